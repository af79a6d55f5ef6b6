#include "backends/cpu/elementwise.h"

#include <algorithm>

#include "kernels/cpu/eval.h"
#include "kernels/cpu/isa_kernels.h"

namespace tutti::cpu {
namespace {

class PassKernel : public Kernel {
 public:
  PassKernel(kernels::Eval eval, int threads) : eval_(std::move(eval)), threads_(threads) {
    scratch = eval_.scratch_bytes(threads);
    implementation = kernels::isa_kernels().name;
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

/// The layout of most bytes of the full-shape inputs; row-major if there are none or a result requires it.
Layout choose_layout(const sdk::Program& program, const sdk::Fusion& f, const PassSite& site) {
  Layout plain;
  if (std::any_of(f.outputs.begin(), f.outputs.end(), site.row_major)) return plain;
  std::vector<std::pair<Layout, size_t>> votes;
  for (uint32_t v : f.inputs) {
    const TensorType& t = program.type(v);
    if (t.shape != f.dims) continue;
    Layout layout = site.layout(v);
    Physical loops;
    if (!layout.plain && !physical_loops(layout, t, loops)) continue;
    size_t bytes = num_bytes(t);
    // Layouts with equal loops count as the same, whatever their dtype.
    auto same = [&](const auto& vote) {
      if (vote.first.plain || layout.plain) return vote.first.plain == layout.plain;
      return vote.first.form->same_order(*layout.form);
    };
    auto it = std::find_if(votes.begin(), votes.end(), same);
    if (it == votes.end())
      votes.emplace_back(layout, bytes);
    else
      it->second += bytes;
  }
  if (votes.empty()) return plain;
  // In a tie, the library's layout: its readers are usually convolutions, which would have to convert a row-major one.
  auto fewer = [](const auto& a, const auto& b) {
    return std::pair(a.second, !a.first.plain) < std::pair(b.second, !b.first.plain);
  };
  return std::max_element(votes.begin(), votes.end(), fewer)->first;
}

/// Merges inputs that are the same memory (one is a reshape of the other), so that overwriting one is known to
/// overwrite both.
std::vector<TuttiInstr> merge_aliases(const sdk::Fusion& f, const std::vector<uint32_t>& memories,
                                      const std::vector<kernels::Operand>& operands) {
  std::vector<TuttiInstr> code = f.code;
  for (TuttiInstr& i : code) {
    if (i.code != TUTTI_X_INPUT || memories[i.a] == TUTTI_NONE) continue;
    for (uint32_t j = 0; j < i.a; ++j)
      if (memories[j] == memories[i.a] && operands[j].dtype == operands[i.a].dtype &&
          operands[j].strides == operands[i.a].strides)
        i.a = j;
  }
  return code;
}

/// Converts strides over the shape to strides over the loops. Dimensions of size 1 get the dense stride.
std::vector<int64_t> strides_in(const Physical& loops, const Shape& logical) {
  Shape strides = strides_of(loops.dims);
  for (size_t d = 0; d < loops.dims.size(); ++d)
    if (loops.dims[d] != 1) strides[d] = logical[loops.axis[d]] * loops.step[d];
  return strides;
}

}  // namespace

Pass make_pass(const sdk::Program& program, const sdk::Fusion& f, const PassSite& site, int threads) {
  const Shape& shape = f.dims;
  Layout layout = choose_layout(program, f, site);
  TensorType any_type{DType::f32, shape};
  bool fits = true;  // every full-shape operand is available in that layout
  for (const auto& list : {f.outputs, f.inputs})
    for (uint32_t v : list) {
      const TensorType& t = program.type(v);
      if (t.shape != shape) continue;
      fits &= layout.plain || !layout_as(layout, t).plain;
      if (layout.plain || layout.form->stores(t.dtype)) any_type = t;
    }
  if (!fits) layout = Layout{};
  Physical loops;
  physical_loops(layout, any_type, loops);
  Shape dense = strides_of(loops.dims);

  Pass pass;
  std::vector<Layout> in, out;
  std::vector<kernels::Operand> operands;
  std::vector<sdk::PassOperand> read;
  std::vector<uint32_t> memories;
  for (uint32_t v : f.inputs) {
    const TensorType& t = program.type(v);
    in.push_back(t.shape == shape ? layout_as(layout, t) : Layout{});
    operands.push_back({t.dtype, t.shape == shape ? dense : strides_in(loops, broadcast_strides(t.shape, shape))});
    memories.push_back(site.memory(v, in.back()));
    bool whole = num_elements(t.shape) == num_elements(shape) && operands.back().strides == dense;
    read.push_back({memories.back(), size_of(t.dtype), whole});
  }
  std::vector<int> in_place;
  for (uint32_t v : f.outputs) {
    out.push_back(layout_as(layout, program.type(v)));
    pass.over.push_back(site.overwritten(v, read));
    auto at =
        pass.over.back() == TUTTI_NONE ? memories.end() : std::find(memories.begin(), memories.end(), pass.over.back());
    in_place.push_back(at == memories.end() ? -1 : static_cast<int>(at - memories.begin()));
  }
  kernels::Eval eval(merge_aliases(f, memories, operands), loops.dims, operands, f.types(program), in_place,
                     program.numerics == TUTTI_EXACT);
  pass.kernel = std::make_unique<PassKernel>(std::move(eval), threads);
  pass.kernel->in = in;
  pass.kernel->out = out;
  return pass;
}

namespace {

MatchResult declines(const NodeView& c) {
  if (!c.node().elementwise()) return "no scalar expression";
  return kernels::Eval::declines(c.node().expr);
}

// ---- casts from and to 64-bit types, which the lanes do not support

/// Whether the expression is one cast of its input.
bool is_cast(const sdk::Node& n) {
  return n.expr.size() == 3 && n.inputs.size() == 1 && n.expr[0].code == TUTTI_X_INPUT &&
         n.expr[1].code == TUTTI_X_CAST && n.expr[2].code == TUTTI_X_RESULT;
}

MatchResult declines_convert(const NodeView& c) {
  if (!c.node().elementwise()) return "no scalar expression";
  return is_cast(c.node()) ? "" : "not a plain cast";
}

KernelPtr make_convert(const NodeView& c) {
  auto n = static_cast<size_t>(num_elements(c.in(0).shape));
  return std::make_unique<FunctionKernel>(
      c, [n, from = c.in(0).dtype, to = c.out(0).dtype](void* const* in, void* const* out, std::byte*) {
        for (size_t i = 0; i < n; ++i) store_element(to, out[0], i, load_element(from, in[0], i));
      });
}

const Entry entries[] = {{"kernels elementwise", "*", declines, nullptr, {.exact = true, .elementwise = true}},
                         {"host conversion", "*", declines_convert, make_convert}};

}  // namespace

std::span<const Entry> elementwise_entries() { return entries; }

}  // namespace tutti::cpu
