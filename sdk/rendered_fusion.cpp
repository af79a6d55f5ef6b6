// Elementwise nodes as one instruction list, and what a product can take along.
#include <algorithm>
#include <map>

#include "sdk/rendered_kernels.h"

namespace tutti::sdk {
namespace {

/// Merges the expressions of nodes.
class Merger {
 public:
  Merger(const Program& program, const std::function<bool(uint32_t)>& stored) : program_(program), stored_(stored) {}

  void add(const Node& n) {
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
        int operands = operand_count(i.code);
        if (operands > 0) i.a = at[i.a];
        if (operands > 1) i.b = at[i.b];
        if (operands > 2) i.c = at[i.c];
      }
      at[k] = push(i);
    }
    for (uint32_t v : n.results) {
      if (v == TUTTI_NONE || !stored_(v)) continue;
      auto dtype = static_cast<uint16_t>(program_.type(v).dtype);
      push({TUTTI_X_RESULT, dtype, made_[v], static_cast<uint32_t>(f.outputs.size()), 0});
      f.outputs.push_back(v);
    }
  }

  Fusion f;

 private:
  uint32_t push(const TuttiInstr& i) {
    f.code.push_back(i);
    return static_cast<uint32_t>(f.code.size() - 1);
  }
  uint32_t input(uint32_t v) {
    if (auto it = made_.find(v); it != made_.end()) return it->second;
    auto dtype = static_cast<uint16_t>(program_.type(v).dtype);
    uint32_t at = push({TUTTI_X_INPUT, dtype, static_cast<uint32_t>(f.inputs.size()), 0, 0});
    f.inputs.push_back(v);
    return made_[v] = at;
  }
  /// A result that the next node reads is what memory would have held.
  uint32_t rounded(uint32_t at, uint16_t dtype) {
    if (dtype != TUTTI_F16 && dtype != TUTTI_BF16) return at;
    return push({dialect::round_instr, dtype, at, 0, 0});
  }

  const Program& program_;
  const std::function<bool(uint32_t)>& stored_;
  std::map<uint32_t, uint32_t> made_;  // value → instruction
};

/// The one arithmetic instruction of an expression of inputs and constants, or null.
const TuttiInstr* only_instruction(const Node& n) {
  const TuttiInstr* found = nullptr;
  for (const TuttiInstr& i : n.expr) {
    if (i.code <= TUTTI_X_RESULT) continue;
    if (found) return nullptr;
    found = &i;
  }
  return found;
}

}  // namespace

Fusion fuse(const Program& program, const std::vector<uint32_t>& nodes, const std::function<bool(uint32_t)>& stored) {
  Merger m(program, stored);
  for (uint32_t k : nodes) {
    const Node& n = program.nodes[k];
    for (uint32_t v : n.results)
      if (v != TUTTI_NONE) m.f.dims = program.type(v).shape;
    m.f.exact = (n.flags & TUTTI_NODE_EXACT) != 0;
    m.add(n);
  }
  return std::move(m.f);
}

std::vector<dialect::Operand> Fusion::operands(const Program& program) const {
  std::vector<dialect::Operand> list;
  for (uint32_t v : inputs) {
    const TensorType& t = program.type(v);
    list.push_back({t.dtype, t.shape == dims ? strides_of(dims) : broadcast_strides(t.shape, dims)});
  }
  return list;
}

std::vector<DType> Fusion::types(const Program& program) const {
  std::vector<DType> list;
  for (uint32_t v : outputs) list.push_back(program.type(v).dtype);
  return list;
}

dialect::LaunchList Fusion::render(const Program& program, const Traits& traits) const {
  return dialect::elementwise(traits, code, dims, operands(program), types(program), exact);
}

bool Fusion::same_as(const Fusion& other, const Program& program) const {
  auto same = [](const TuttiInstr& x, const TuttiInstr& y) {
    return x.code == y.code && x.dtype == y.dtype && x.a == y.a && x.b == y.b && x.c == y.c;
  };
  return exact == other.exact && std::equal(code.begin(), code.end(), other.code.begin(), other.code.end(), same) &&
         types(program) == other.types(program);
}

uint32_t added_to(const Node& n, uint32_t x) {
  const TuttiInstr* i = only_instruction(n);
  if (!i || i->code != TUTTI_X_ADD || n.results.size() != 1) return TUTTI_NONE;
  const TuttiInstr &a = n.expr[i->a], &b = n.expr[i->b];
  if (a.code != TUTTI_X_INPUT || b.code != TUTTI_X_INPUT) return TUTTI_NONE;
  uint32_t p = n.inputs[a.a], q = n.inputs[b.a];
  return p == q ? TUTTI_NONE : p == x ? q : q == x ? p : TUTTI_NONE;
}

bool is_relu(const Node& n) {
  const TuttiInstr* i = only_instruction(n);
  if (!i || i->code != TUTTI_X_MAX || n.inputs.size() != 1 || n.results.size() != 1) return false;
  const TuttiInstr &a = n.expr[i->a], &b = n.expr[i->b];
  auto zero = [](const TuttiInstr& c) { return c.code == TUTTI_X_CONST && constant_of(c) == 0; };
  return (a.code == TUTTI_X_INPUT && zero(b)) || (b.code == TUTTI_X_INPUT && zero(a));
}

bool is_tanh_gelu(const Node& n) {
  auto tanh = [](const TuttiInstr& i) { return i.code == TUTTI_X_TANH; };
  return n.op == "gelu" && n.inputs.size() == 1 && n.results.size() == 1 &&
         std::any_of(n.expr.begin(), n.expr.end(), tanh);
}

}  // namespace tutti::sdk
