// LSTM, GRU and RNN.
#include <fmt/format.h>

#include "graph/functions/recurrent.h"

#include "graph/ops.h"
#include "onnx/handler.h"

namespace tutti::onnx {
namespace {

/// Shared by the three ops: sizes, directions and initial states.
struct Layer {
  Value x, lengths;  // x [T, N, I]
  int64_t steps, batch, hidden, directions;
  bool reverse, batch_first;
};

Layer layer_of(const Context& c, int64_t gates, const std::vector<std::string>& activations) {
  Value x = c.in(0), w = c.in(1);
  if (x.rank() != 3 || w.rank() != 3 || c.in(2).rank() != 3) c.bad("X, W and R must have rank 3");
  std::string direction = c.s("direction", "forward");
  Layer l{.x = x,
          .lengths = c.maybe(4),
          .hidden = w.shape()[1] / gates,
          .directions = direction == "bidirectional" ? 2 : 1,
          .reverse = direction == "reverse",
          .batch_first = c.i("layout", 0) != 0};
  if (w.shape()[0] != l.directions)
    c.bad(fmt::format("the weights have {} directions, which does not match direction '{}'", w.shape()[0], direction));
  std::vector<std::string> given = c.texts("activations");
  for (size_t k = 0; k < given.size(); ++k)
    if (given[k] != activations[k % activations.size()])
      c.unsupported(fmt::format("'{}' as activation {}", given[k], k));
  if (c.has_attribute("clip")) c.unsupported("attribute 'clip'");
  if (l.batch_first) l.x = transpose(x, {1, 0, 2});
  l.steps = l.x.shape()[0];
  l.batch = l.x.shape()[1];
  return l;
}

/// Direction `d` of a weight [D, n, …] with reordered gates.
Value gates_of(Value w, int64_t d, const Ints& order) {
  Value one = squeeze(narrow(w, 0, d, 1), {0});
  int64_t size = one.shape()[0] / static_cast<int64_t>(order.size());
  Values parts;
  for (int64_t k : order) parts.push_back(narrow(one, 0, k * size, size));
  return concat(parts, 0);
}

std::vector<RecurrentWeights> weights_of(const Context& c, const Layer& l, const Ints& order) {
  std::vector<RecurrentWeights> all;
  for (int64_t d = 0; d < l.directions; ++d) {
    RecurrentWeights w{.w_ih = gates_of(c.in(1), d, order), .w_hh = gates_of(c.in(2), d, order)};
    if (c.has(3)) {
      Value b = c.in(3);
      if (b.rank() != 2) c.bad("B must have rank 2");
      int64_t half = b.shape()[1] / 2;
      w.b_ih = gates_of(narrow(b, 1, 0, half), d, order);
      w.b_hh = gates_of(narrow(b, 1, half, half), d, order);
    }
    all.push_back(w);
  }
  if (l.reverse) all.push_back(all[0]);  // runs both directions and uses the backward one
  return all;
}

/// An initial state [D, N, H]; null if omitted.
Value state(const Context& c, const Layer& l, size_t k) {
  if (!c.has(k)) return {};
  Value h = l.batch_first ? transpose(c.in(k), {1, 0, 2}) : c.in(k);
  return l.reverse ? concat({h, h}, 0) : h;
}

/// Y [T, D, N, H] and the final states, in ONNX's layout.
Values results(const Layer& l, const RecurrentResult& r) {
  Value y = transpose(reshape(r.y, {l.steps, l.batch, -1, l.hidden}), {0, 2, 1, 3});
  if (l.reverse) y = narrow(y, 1, 1, 1);
  Values out{l.batch_first ? transpose(y, {2, 0, 1, 3}) : y};
  for (Value last : {r.h_n, r.c_n}) {
    if (!last) continue;
    if (l.reverse) last = narrow(last, 0, 1, 1);
    out.push_back(l.batch_first ? transpose(last, {1, 0, 2}) : last);
  }
  return out;
}

Values long_short(const Context& c) {
  Layer l = layer_of(c, 4, {"Sigmoid", "Tanh", "Tanh"});
  if (c.has(7)) c.unsupported("input P (peephole weights)");
  if (c.i("input_forget", 0) != 0) c.unsupported("input_forget = 1");
  RecurrentOptions o{.bidirectional = l.directions == 2 || l.reverse, .lengths = l.lengths};
  return results(
      l, lstm(l.x, state(c, l, 5), state(c, l, 6), weights_of(c, l, {0, 2, 3, 1}), o));  // i, o, f, c to i, f, g, o
}

/// Runs a recurrence without an op of its own: next(product of x [N, n], h) for every step.
template <class Next>
RecurrentResult unrolled(const Context& c, const Layer& l, const std::vector<RecurrentWeights>& weights, Value h0,
                         const Next& next) {
  if (l.lengths) c.unsupported("sequence_lens for this variant of the op");
  if (l.steps > 1 << 16)
    c.unsupported(
        fmt::format("a sequence of {} steps (above 65536, because this variant of the op is unrolled)", l.steps));
  Values ys, last;
  for (size_t d = 0; d < weights.size(); ++d) {
    const RecurrentWeights& w = weights[d];
    Value h =
        h0 ? squeeze(narrow(h0, 0, static_cast<int64_t>(d), 1), {0}) : broadcast(l.x.like(0), {l.batch, l.hidden});
    Value z = matmul(l.x, w.w_ih, false, true);
    if (w.b_ih) z = z + w.b_ih;
    Values steps(static_cast<size_t>(l.steps));
    for (int64_t k = 0; k < l.steps; ++k) {
      int64_t t = d == 1 ? l.steps - 1 - k : k;
      h = next(squeeze(narrow(z, 0, t, 1), {0}), h, w);
      steps[static_cast<size_t>(t)] = h;
    }
    ys.push_back(stack(steps, 0));
    last.push_back(h);
  }
  return {.y = concat(ys, 2), .h_n = stack(last, 0)};
}

Values gated(const Context& c) {
  Layer l = layer_of(c, 3, {"Sigmoid", "Tanh"});
  std::vector<RecurrentWeights> weights = weights_of(c, l, {1, 0, 2});  // z, r, h to r, z, n
  if (c.i("linear_before_reset", 0) != 0) {
    RecurrentOptions o{.bidirectional = l.directions == 2 || l.reverse, .lengths = l.lengths};
    return results(l, gru(l.x, state(c, l, 5), weights, o));
  }
  int64_t n = l.hidden;
  return results(l, unrolled(c, l, weights, state(c, l, 5), [n](Value z, Value h, const RecurrentWeights& w) {
                   Value gates = matmul(h, narrow(w.w_hh, 0, 0, 2 * n), false, true) + narrow(z, 1, 0, 2 * n);
                   if (w.b_hh) gates = gates + narrow(w.b_hh, 0, 0, 2 * n);
                   Value r = sigmoid(narrow(gates, 1, 0, n)), u = sigmoid(narrow(gates, 1, n, n));
                   Value candidate = matmul(r * h, narrow(w.w_hh, 0, 2 * n, n), false, true) + narrow(z, 1, 2 * n, n);
                   if (w.b_hh) candidate = candidate + narrow(w.b_hh, 0, 2 * n, n);
                   Value fresh = tanh(candidate);
                   return fresh + u * (h - fresh);
                 }));
}

Values simple(const Context& c) {
  Layer l = layer_of(c, 1, {"Tanh"});
  return results(l,
                 unrolled(c, l, weights_of(c, l, {0}), state(c, l, 5), [](Value z, Value h, const RecurrentWeights& w) {
                   Value sum = z + matmul(h, w.w_hh, false, true);
                   return tanh(w.b_hh ? sum + w.b_hh : sum);
                 }));
}

}  // namespace

void add_recurrence(Table& t) {
  t["LSTM"] = long_short;
  t["GRU"] = gated;
  t["RNN"] = simple;
}

}  // namespace tutti::onnx
