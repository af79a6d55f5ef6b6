#include "graph/functions/recurrent.h"

#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/ops/add.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/concat.h"
#include "graph/ops/dropout.h"
#include "graph/ops/gru_recurrence.h"
#include "graph/ops/iota.h"
#include "graph/ops/less.h"
#include "graph/ops/lstm_recurrence.h"
#include "graph/ops/matmul.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "graph/ops/slice.h"
#include "graph/ops/transpose.h"

namespace tutti {
namespace {

/// Row k of x [rows, N, H] as [N, H].
Value row(Value x, int64_t k) {
  const Shape& s = x.shape();
  return reshape(slice(x, {k, 0, 0}, {k + 1, s[1], s[2]}), {s[1], s[2]});
}

/// One direction of an LSTM or GRU layer: returns y followed by [h_n] or [h_n, c_n], from initial states in the same
/// order.
using Direction = Values (*)(Value x, const Values& states, const RecurrentWeights& w, bool reverse, Value lengths);

Values with_lengths(Values in, Value lengths) {
  if (lengths) in.push_back(lengths);
  return in;
}

/// The sum of both biases, which is all an LSTM needs; either may be null.
Value added(Value a, Value b) { return a && b ? a + b : a ? a : b; }

/// x w_ih^T + bias for all steps in one product.
Value gates_of(Value x, Value w_ih, Value bias) {
  Value z = matmul(x, w_ih, false, true);
  return bias ? z + bias : z;
}

/// The state after the direction's last step.
Value last(Value y, bool reverse) { return row(y, reverse ? 0 : y.shape()[0] - 1); }

Values lstm_direction(Value x, const Values& states, const RecurrentWeights& w, bool reverse, Value lengths) {
  Value z = gates_of(x, w.w_ih, added(w.b_ih, w.b_hh));
  Values out = call_all(lstm_recurrence_op, with_lengths({states[0], states[1], w.w_hh, z}, lengths),
                        {{"reverse", Ints{reverse}}});
  return {out[0], last(out[0], reverse), out[1]};
}

Values gru_direction(Value x, const Values& states, const RecurrentWeights& w, bool reverse, Value lengths) {
  Value z = gates_of(x, w.w_ih, w.b_ih);
  Value bias = w.b_hh ? w.b_hh : x.graph().full(x.dtype(), 0, {w.w_hh.shape()[0]});
  Value y = call(gru_recurrence_op, with_lengths({states[0], w.w_hh, bias, z}, lengths), {{"reverse", Ints{reverse}}});
  return {y, last(y, reverse)};
}

/// y where step t is within a sequence's length, else 0.
Value cut(Value y, Value lengths) {
  Value step = iota(y.graph(), {y.shape()[0], 1, 1}, 0);
  return select(less(step, reshape(lengths, {1, y.shape()[1], 1})), y, y.like(0));
}

Values run(const char* what, Direction direction, Value x, Values states, const std::vector<RecurrentWeights>& weights,
           const RecurrentOptions& o) {
  auto count = static_cast<int64_t>(weights.size());
  int64_t directions = o.bidirectional ? 2 : 1;
  if (count == 0 || count % directions != 0)
    throw invalid(
        fmt::format("{}: {} sets of weights do not make whole layers of {} directions", what, count, directions),
        "give one RecurrentWeights per layer and direction");
  if (x.rank() != 3)
    throw invalid(fmt::format("{}: x is {}, must have 3 dimensions", what, to_string(x.shape())),
                  "give [T, N, I], or [N, T, I] with batch_first");
  if (o.dropout > 0 && (!o.seed || !o.step))
    throw invalid(fmt::format("{}: dropout {} without seed and step", what, o.dropout), "give both, or dropout 0");
  if (o.batch_first) x = transpose(x, {1, 0, 2});
  for (const RecurrentWeights& w : weights)
    if (w.w_ih.rank() != 2 || w.w_hh.rank() != 2)
      throw invalid(fmt::format("{}: weights {} and {} must be matrices", what, to_string(w.w_ih.shape()),
                                to_string(w.w_hh.shape())));
  Shape state = {count, x.shape()[1], weights[0].w_hh.shape()[1]};
  for (Value& s : states) {
    if (!s) s = x.graph().full(x.dtype(), 0, state);
    if (s.shape() != state)
      throw invalid(
          fmt::format("{}: an initial state is {}, expected {}", what, to_string(s.shape()), to_string(state)));
  }
  std::vector<Values> ends(states.size());
  for (int64_t k = 0; k < count; k += directions) {
    if (k > 0 && o.dropout > 0) x = dropout(x, o.seed, o.step, o.dropout, o.stream + k / directions);
    Values sides;
    for (int64_t side = 0; side < directions; ++side) {
      Values first;
      for (Value s : states) first.push_back(row(s, k + side));
      Values out = direction(x, first, weights[static_cast<size_t>(k + side)], side == 1, o.lengths);
      sides.push_back(o.lengths ? cut(out[0], o.lengths) : out[0]);
      for (size_t s = 0; s < ends.size(); ++s) ends[s].push_back(reshape(out[s + 1], {1, state[1], state[2]}));
    }
    x = sides.size() == 1 ? sides[0] : concat(sides, 2);
  }
  Values out = {o.batch_first ? transpose(x, {1, 0, 2}) : x};
  for (const Values& s : ends) out.push_back(s.size() == 1 ? s[0] : concat(s, 0));
  return out;
}

}  // namespace

RecurrentResult lstm(Value x, Value h0, Value c0, const std::vector<RecurrentWeights>& weights,
                     const RecurrentOptions& o) {
  Values out = run("lstm", lstm_direction, x, {h0, c0}, weights, o);
  return {out[0], out[1], out[2]};
}

RecurrentResult gru(Value x, Value h0, const std::vector<RecurrentWeights>& weights, const RecurrentOptions& o) {
  Values out = run("gru", gru_direction, x, {h0}, weights, o);
  return {out[0], out[1], {}};
}

}  // namespace tutti
