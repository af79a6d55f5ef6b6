#include "backends/onednn/elementwise.h"

#include <algorithm>
#include <map>

#include "kernels/eval.h"

namespace tutti::onednn {
namespace {

/// Merges the expressions of nodes into one list of instructions.
class Merger {
 public:
  Merger(const sdk::Program& program, const FusionSite& site) : program_(program), site_(site) {}

  void add(const sdk::Node& n) {
    bool exact = (n.flags & TUTTI_NODE_EXACT) != 0;
    std::vector<uint32_t> at(n.expr.size());
    for (size_t k = 0; k < n.expr.size(); ++k) {
      TuttiInstr i = n.expr[k];
      if (i.code == TUTTI_X_INPUT) {
        at[k] = input(n.inputs[i.a]);
        continue;
      }
      if (i.code == TUTTI_X_RESULT) {
        if (uint32_t v = n.results[i.b]; v != TUTTI_NONE) made_[v] = rounded(at[i.a], i.dtype);
        continue;
      }
      if (i.code != TUTTI_X_CONST) {
        int operands = sdk::operand_count(i.code);
        if (operands > 0) i.a = at[i.a];
        if (operands > 1) i.b = at[i.b];
        if (operands > 2) i.c = at[i.c];
      }
      at[k] = push(i);
      if (exact) at[k] = rounded(at[k], i.dtype);
    }
    for (uint32_t v : n.results)
      if (v != TUTTI_NONE && site_.stored(v)) {
        push({TUTTI_X_RESULT, static_cast<uint16_t>(program_.type(v).dtype), made_[v],
              static_cast<uint32_t>(outputs.size()), 0});
        outputs.push_back(v);
      }
  }

  std::vector<TuttiInstr> code;
  std::vector<uint32_t> inputs, outputs;

 private:
  uint32_t push(const TuttiInstr& i) {
    code.push_back(i);
    return static_cast<uint32_t>(code.size() - 1);
  }
  uint32_t input(uint32_t v) {
    if (auto it = made_.find(v); it != made_.end()) return it->second;
    uint32_t at = push(
        {TUTTI_X_INPUT, static_cast<uint16_t>(program_.type(v).dtype), static_cast<uint32_t>(inputs.size()), 0, 0});
    inputs.push_back(v);
    return made_[v] = at;
  }
  uint32_t rounded(uint32_t at, uint16_t dtype) {
    if (dtype != TUTTI_F16 && dtype != TUTTI_BF16) return at;
    return push({kernels::round_instr, dtype, at, 0, 0});
  }

  const sdk::Program& program_;
  const FusionSite& site_;
  std::map<uint32_t, uint32_t> made_;  // value → instruction
};

class FusionKernel : public Kernel {
 public:
  FusionKernel(kernels::Eval eval, int threads) : eval_(std::move(eval)), threads_(threads) {
    scratch = eval_.scratch_bytes(threads);
  }
  void bind(std::span<void* const> in, std::span<void* const> out, std::byte* scratch) override {
    in_.assign(in.begin(), in.end());
    out_.assign(out.begin(), out.end());
    scratch_ = scratch;
  }
  void run() override { eval_.run(in_.data(), out_.data(), scratch_, threads_); }

 private:
  kernels::Eval eval_;
  int threads_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
  std::byte* scratch_ = nullptr;
};

/// The layout that most bytes of the inputs of full shape have; row-major where there is none or a result demands it.
Form choose_form(const sdk::Program& program, const Merger& m, const Shape& shape, const FusionSite& site) {
  Form plain;
  if (std::any_of(m.outputs.begin(), m.outputs.end(), site.row_major)) return plain;
  std::vector<std::pair<Form, size_t>> votes;
  for (uint32_t v : m.inputs) {
    const TensorType& t = program.type(v);
    if (t.shape != shape) continue;
    Form f = site.form(v);
    Physical loops;
    if (!f.plain && !physical_loops(f, t, loops)) continue;
    size_t bytes = num_bytes(t);
    // The same layout in another dtype counts as the same: its loops decide.
    auto same = [&](const auto& vote) {
      Physical other;
      if (vote.first.plain || f.plain) return vote.first.plain == f.plain;
      return vote.first.desc.get_strides() == f.desc.get_strides() &&
             vote.first.desc.get_inner_blks() == f.desc.get_inner_blks() &&
             vote.first.desc.get_inner_idxs() == f.desc.get_inner_idxs();
    };
    auto it = std::find_if(votes.begin(), votes.end(), same);
    if (it == votes.end())
      votes.emplace_back(f, bytes);
    else
      it->second += bytes;
  }
  if (votes.empty()) return plain;
  return std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

/// Two inputs that are the same memory (one is a reshape of the other) become one, so that a result written over it is
/// known to be written over both.
void merge_aliases(Merger& m, const std::vector<Form>& forms, const std::vector<kernels::Operand>& operands,
                   const FusionSite& site) {
  for (size_t k = 0; k < m.inputs.size(); ++k) {
    uint32_t memory = site.memory(m.inputs[k], forms[k]);
    for (size_t j = 0; j < k && memory != TUTTI_NONE; ++j) {
      if (site.memory(m.inputs[j], forms[j]) != memory || operands[j].dtype != operands[k].dtype ||
          operands[j].strides != operands[k].strides)
        continue;
      for (TuttiInstr& i : m.code)
        if (i.code == TUTTI_X_INPUT && i.a == k) i.a = static_cast<uint32_t>(j);
      break;
    }
  }
}

/// The chosen layout for a value of another dtype: only a row-major layout or one of equal dtype can be named.
bool can_take(const Form& f, const TensorType& t) { return f.plain || f.desc.get_data_type() == data_type(t.dtype); }

}  // namespace

Fusion make_fusion(const sdk::Program& program, std::span<const uint32_t> nodes, const FusionSite& site, int threads) {
  Merger m(program, site);
  Shape shape;
  for (uint32_t k : nodes) {
    const sdk::Node& n = program.nodes[k];
    for (uint32_t v : n.inputs) shape = broadcast_shapes(shape, program.type(v).shape);
    for (uint32_t v : n.results)
      if (v != TUTTI_NONE) shape = program.type(v).shape;
    m.add(n);
  }
  Form form = choose_form(program, m, shape, site);
  bool fits = true;  // every operand of full shape can be had in that layout
  for (const auto& list : {m.inputs, m.outputs})
    for (uint32_t v : list)
      if (program.type(v).shape == shape) fits &= can_take(form, program.type(v));
  if (!fits) form = Form{};
  TensorType any_type{DType::f32, shape};
  if (!form.plain) {
    for (uint32_t v : m.inputs)
      if (program.type(v).shape == shape && can_take(form, program.type(v))) any_type = program.type(v);
  }
  Physical loops;
  physical_loops(form, any_type, loops);
  Shape dense = strides_of(loops.dims);

  std::vector<kernels::Operand> operands;
  std::vector<Form> in, out;
  for (uint32_t v : m.inputs) {
    const TensorType& t = program.type(v);
    bool full = t.shape == shape;
    in.push_back(full && !form.plain ? form : plain_form(t));
    if (full) {
      operands.push_back({t.dtype, dense});
      continue;
    }
    Shape logical = broadcast_strides(t.shape, shape);
    std::vector<int64_t> strides;
    for (size_t d = 0; d < loops.dims.size(); ++d)  // along a dimension of size 1 any stride is right: the dense one
      strides.push_back(loops.dims[d] == 1 ? dense[d] : logical[loops.axis[d]] * loops.step[d]);
    operands.push_back({t.dtype, strides});
  }
  merge_aliases(m, in, operands, site);
  std::vector<DType> types;
  std::vector<int> in_place;
  std::vector<uint32_t> in_memory;
  std::vector<bool> taken(m.inputs.size());
  for (uint32_t v : m.outputs) {
    types.push_back(program.type(v).dtype);
    out.push_back(form.plain ? plain_form(program.type(v)) : form);
    uint32_t target = site.target(v), over = TUTTI_NONE;
    int shares = -1;
    for (size_t k = 0; k < m.inputs.size() && shares < 0; ++k) {
      uint32_t memory = site.memory(m.inputs[k], in[k]);
      if (memory == TUTTI_NONE || taken[k] || num_elements(program.type(m.inputs[k]).shape) != num_elements(shape))
        continue;
      bool same = operands[k].strides == dense && size_of(operands[k].dtype) == size_of(types.back());
      if (memory == target)
        shares = static_cast<int>(k);
      else if (target == TUTTI_NONE && same && site.dead(m.inputs[k], memory))
        shares = static_cast<int>(k), over = memory;
    }
    if (shares >= 0) taken[static_cast<size_t>(shares)] = true;
    in_place.push_back(shares);
    in_memory.push_back(over);
  }
  kernels::Eval eval(m.code, loops.dims, operands, types, in_place);
  Fusion f{std::make_unique<FusionKernel>(std::move(eval), threads), m.inputs, m.outputs, in_memory};
  f.kernel->in = in;
  f.kernel->out = out;
  return f;
}

namespace {

Decline declines(const Case& c) {
  if (!c.node().elementwise()) return "no scalar expression";
  return kernels::Eval::declines(c.node().expr);
}

KernelPtr make(const Case& c) {
  FusionSite site{[&](uint32_t v) { return plain_form(c.program.type(v)); },
                  [](uint32_t) { return true; },
                  [](uint32_t) { return true; },
                  [](uint32_t) { return TUTTI_NONE; },
                  [](uint32_t, const Form&) { return TUTTI_NONE; },
                  [](uint32_t, uint32_t) { return false; }};
  uint32_t nodes[] = {c.number};
  return make_fusion(c.program, nodes, site, c.threads).kernel;
}

// ---- casts from and to 64-bit types, which have no lanes

/// Whether the expression is one cast of its input.
bool is_cast(const sdk::Node& n) {
  return n.expr.size() == 3 && n.inputs.size() == 1 && n.expr[0].code == TUTTI_X_INPUT &&
         n.expr[1].code == TUTTI_X_CAST && n.expr[2].code == TUTTI_X_RESULT;
}

Decline declines_convert(const Case& c) {
  if (!c.node().elementwise()) return "no scalar expression";
  return is_cast(c.node()) ? "" : "more than a cast";
}

KernelPtr make_convert(const Case& c) {
  auto n = static_cast<size_t>(num_elements(c.in(0).shape));
  return std::make_unique<FunctionKernel>(
      c, [n, from = c.in(0).dtype, to = c.out(0).dtype](void* const* in, void* const* out, std::byte*) {
        for (size_t i = 0; i < n; ++i) store_element(to, out[0], i, load_element(from, in[0], i));
      });
}

const Entry entries[] = {{elementwise_entry, "*", declines, make},
                         {"host conversion", "*", declines_convert, make_convert}};

}  // namespace

std::span<const Entry> elementwise_entries() { return entries; }

}  // namespace tutti::onednn
