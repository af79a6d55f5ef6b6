#include "sdk/plan/fusion.h"

#include <map>

#include "core/base/instr.h"
#include "core/geometry/reduction.h"

namespace tutti::sdk {

using instr::operand_count;

namespace {

/// Merges the expressions of nodes.
class Merger {
 public:
  Merger(const Program& program, const std::function<bool(uint32_t)>& stored, ExactRounding exact)
      : program_(program), stored_(stored), exact_(exact) {}

  void add(const Node& n) {
    if (n.op == "reshape") {
      made_[n.results[0]] = input(n.inputs[0]);
      return;
    }
    if (n.elementwise())
      add_expression(n);
    else
      add_reduction(n);
    for (uint32_t v : n.results) {
      if (v == TUTTI_NONE || !stored_(v)) continue;
      auto dtype = static_cast<uint16_t>(program_.type(v).dtype);
      push({TUTTI_X_RESULT, dtype, made_[v], static_cast<uint32_t>(f.outputs.size()), 0});
      f.outputs.push_back(v);
    }
  }

  Fusion f;

 private:
  void add_reduction(const Node& n) {
    auto dtype = static_cast<uint16_t>(program_.type(n.results[0]).dtype);
    auto kind = static_cast<uint32_t>(*reduce_op(n.op));
    bool columns = folds_columns(program_.type(n.inputs[0]).shape, n.attrs);
    uint16_t code = columns ? instr::column : instr::fold;
    made_[n.results[0]] = rounded(push({code, dtype, input(n.inputs[0]), kind, 0}), dtype);
  }

  void add_expression(const Node& n) {
    f.exact = (n.flags & TUTTI_NODE_EXACT) != 0;
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
      if (f.exact && exact_ == ExactRounding::by_code) at[k] = rounded(at[k], i.dtype);
    }
  }

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
  /// Rounds an intermediate result to its dtype, as a store to memory would.
  uint32_t rounded(uint32_t at, uint16_t dtype) {
    if (!is_narrow(static_cast<DType>(dtype))) return at;
    return push({instr::round, dtype, at, 0, 0});
  }

  const Program& program_;
  const std::function<bool(uint32_t)>& stored_;
  ExactRounding exact_;
  std::map<uint32_t, uint32_t> made_;  // value → instruction
};

}  // namespace

std::vector<DType> Fusion::types(const Program& program) const {
  std::vector<DType> list;
  for (uint32_t v : outputs) list.push_back(program.type(v).dtype);
  return list;
}

bool folds_columns(const Shape& x, const Attrs& attrs) {
  Ints axes = reduction_geometry(x, attrs).axes;
  for (size_t d = 0; d < axes.size(); ++d)
    if (axes[d] != static_cast<int64_t>(d)) return false;
  return !axes.empty() && axes.size() < x.size();
}

Fusion fuse(const Program& program, std::span<const uint32_t> nodes, ExactRounding exact,
            const std::function<bool(uint32_t)>& stored) {
  Merger m(program, stored, exact);
  for (uint32_t k : nodes) {
    const Node& n = program.nodes[k];
    for (uint32_t v : n.results)
      if (v != TUTTI_NONE) m.f.dims = program.type(v).shape;
    m.add(n);
  }
  return std::move(m.f);
}

Fusion with_one_output(const Fusion& f, size_t output) {
  std::vector<bool> needed(f.code.size());
  for (size_t k = f.code.size(); k-- > 0;) {
    const TuttiInstr& i = f.code[k];
    if (i.code == TUTTI_X_RESULT) needed[k] = i.b == output;
    const uint32_t operands[] = {i.a, i.b, i.c};
    for (int o = 0; needed[k] && o < operand_count(i.code); ++o) needed[operands[o]] = true;
  }
  Fusion one{{}, {}, {f.outputs[output]}, f.dims, f.exact};
  std::vector<uint32_t> at(f.code.size());
  for (size_t k = 0; k < f.code.size(); ++k) {
    if (!needed[k]) continue;
    TuttiInstr i = f.code[k];
    uint32_t* operands[] = {&i.a, &i.b, &i.c};
    for (int o = 0; o < 3 && o < operand_count(i.code); ++o) *operands[o] = at[*operands[o]];
    if (i.code == TUTTI_X_INPUT) {
      one.inputs.push_back(f.inputs[i.a]);
      i.a = static_cast<uint32_t>(one.inputs.size() - 1);
    }
    if (i.code == TUTTI_X_RESULT) i.b = 0;
    at[k] = static_cast<uint32_t>(one.code.size());
    one.code.push_back(i);
  }
  return one;
}

}  // namespace tutti::sdk
