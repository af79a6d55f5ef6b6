#include "backends/onednn/epilogue.h"

#include <algorithm>

namespace tutti::onednn {
namespace {

/// The one arithmetic instruction of an expression of inputs and constants, or null.
const TuttiInstr* only_instruction(const sdk::Node& n) {
  const TuttiInstr* found = nullptr;
  for (const TuttiInstr& i : n.expr) {
    if (i.code <= TUTTI_X_RESULT) continue;
    if (found) return nullptr;
    found = &i;
  }
  return found;
}

/// The other operand when `n` is x + other (one addition of two inputs), else NONE.
uint32_t added_to(const sdk::Node& n, uint32_t x) {
  const TuttiInstr* i = only_instruction(n);
  if (!i || i->code != TUTTI_X_ADD || n.results.size() != 1) return TUTTI_NONE;
  const TuttiInstr &a = n.expr[i->a], &b = n.expr[i->b];
  if (a.code != TUTTI_X_INPUT || b.code != TUTTI_X_INPUT) return TUTTI_NONE;
  uint32_t p = n.inputs[a.a], q = n.inputs[b.a];
  return p == q ? TUTTI_NONE : p == x ? q : q == x ? p : TUTTI_NONE;
}

/// Whether `bias` is one number per channel (axis 1 of 4) or per column (the last axis).
bool is_bias(const TensorType& bias, const TensorType& y, bool channels) {
  if (bias.dtype != y.dtype) return false;
  size_t from_end = channels ? 3 : 1;
  int64_t size = y.shape[y.shape.size() - from_end];
  if (bias.shape.size() < from_end || bias.shape.size() > y.shape.size() || num_elements(bias.shape) != size)
    return false;
  return bias.shape[bias.shape.size() - from_end] == size;
}

}  // namespace

Readers::Readers(const sdk::Program& program) : nodes(program.values.size()), states(program.values.size()) {
  for (uint32_t k = 0; k < program.nodes.size(); ++k)
    for (uint32_t v : program.nodes[k].inputs) nodes[v].push_back(k);
  for (const sdk::State& s : program.states) ++states[s.after];
}

Tail match_tail(const sdk::Program& program, uint32_t node, const Readers& readers,
                const std::function<bool(uint32_t)>& exists) {
  Tail tail;
  uint32_t at = program.nodes[node].results[0];
  if (at == TUTTI_NONE) return tail;
  const TensorType& y = program.type(at);
  bool channels = program.nodes[node].op == "conv2d";
  uint32_t k = readers.only(at);
  if (k == TUTTI_NONE) return tail;
  const sdk::Node& n = program.nodes[k];
  if (n.version != 1 || (n.flags & TUTTI_NODE_EXACT) || n.results.size() != 1 || n.results[0] == TUTTI_NONE ||
      program.type(n.results[0]) != y)
    return tail;
  uint32_t bias = added_to(n, at);
  if (bias == TUTTI_NONE || !is_bias(program.type(bias), y, channels) || !exists(bias)) return tail;
  tail.epilogue = {bias, n.results[0]};
  tail.nodes.push_back(k);
  return tail;
}

uint32_t match_gradient_sum(const sdk::Program& program, uint32_t node, const Readers& readers) {
  const sdk::Node& dw = program.nodes[node];
  uint32_t d = dw.inputs[1];
  for (uint32_t k : readers.nodes[d]) {
    const sdk::Node& n = program.nodes[k];
    if (n.op != "sum" || n.version != 1 || !n.unknown.empty() || n.inputs.size() != 1 || n.results.size() != 1 ||
        n.inputs[0] != d || n.results[0] == TUTTI_NONE)
      continue;
    if (!n.attrs.has("axes") || normalize_axes(n.attrs.ints("axes"), 4) != std::vector<int64_t>{0, 2, 3}) continue;
    if (num_elements(program.type(n.results[0]).shape) != program.type(d).shape[1]) continue;
    return k;
  }
  return TUTTI_NONE;
}

}  // namespace tutti::onednn
