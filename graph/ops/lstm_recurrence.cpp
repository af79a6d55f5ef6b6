// The recurrence of an LSTM and its gradient. The parts independent of the state, the products with the inputs and the
// gradients of the weights, are matmuls over all steps outside of it (graph/functions/recurrent.h).
#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/add.h"
#include "graph/ops/cast.h"
#include "graph/ops/concat.h"
#include "graph/ops/iota.h"
#include "graph/ops/less.h"
#include "graph/ops/less_equal.h"
#include "graph/ops/logical_and.h"
#include "graph/ops/matmul.h"
#include "graph/ops/mul.h"
#include "graph/ops/select.h"
#include "graph/ops/sigmoid.h"
#include "graph/ops/sub.h"
#include "graph/ops/tanh.h"
#include "graph/recurrent.h"

namespace tutti {

// public
extern TUTTI_API const OpDef lstm_recurrence_op;
extern TUTTI_API const OpDef lstm_recurrence_grad_op;
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs&) {
  const TensorType &h0 = in[0], &z = in[3];
  check_recurrence(z, h0, in[2], 4, in.subspan(4));
  if (in[1] != h0)
    throw invalid(fmt::format("c0 is {}, but h0 is {}: their types must be equal", to_string(in[1]), to_string(h0)));
  Shape steps = {z.shape[0], z.shape[1], h0.shape[1]};
  return {{z.dtype, steps}, h0, {wide(z.dtype), z.shape}, {wide(z.dtype), steps}};
}

Values decompose(const Call& c) {
  DType t = c.in[0].dtype();
  Value h = wide(c.in[0]), cell = wide(c.in[1]), w = wide(c.in[2]), z = wide(c.in[3]);
  int64_t n = h.shape()[1];
  Steps steps(z.shape()[0], c.a.i("reverse") != 0, c.in.subspan(4));
  Value column = iota(c.graph, {1, 4 * n}, 1);
  Value is_g = logical_and(less_equal(column.like(static_cast<double>(2 * n)), column),
                           less(column, column.like(static_cast<double>(3 * n))));
  Values y, gates, cells;
  for (int64_t k = 0; k < steps.count(); ++k) {
    Value sums = steps.of(z, k) + matmul(h, w, false, true);
    Value a = select(is_g, tanh(sums), sigmoid(sums));
    Value next = gate(a, 1, n) * cell + gate(a, 0, n) * gate(a, 2, n);
    h = steps.live(k, gate(a, 3, n) * tanh(next), h);
    cell = steps.live(k, next, cell);
    y.push_back(h);
    gates.push_back(a);
    cells.push_back(cell);
  }
  return {cast(steps.joined(y), t), cast(cell, t), steps.joined(gates), steps.joined(cells)};
}

/// The gradient of the gates; the other gradients are matmuls over all steps.
Values vjp(const VjpContext& g) {
  if (g.d[2] || g.d[3])
    return derive_from_decomposition(lstm_recurrence_op, g);  // of intermediates: second derivatives
  Values in = {g.in[1], g.in[2], g.out[2], g.out[3], g.cotangent(0), g.cotangent(1)};
  in.insert(in.end(), g.in.begin() + 4, g.in.end());
  Values d = call_all(lstm_recurrence_grad_op, in, g.a), back = {d[0], d[1], {}, d[2]};
  if (g.wants[2]) {
    Steps steps(g.in[3].shape()[0], g.a.i("reverse") != 0, {});
    back[2] = matmul(rows_of(d[2]), rows_of(steps.before(g.out[0], g.in[0])), true);
  }
  back.resize(g.in.size());
  return back;
}

Types infer_grad(std::span<const TensorType> in, const Attrs&) {
  const TensorType &w = in[1], &gates = in[2], &dy = in[4], &state = in[5];
  if (dy.shape.size() != 3 || state.shape.size() != 2)
    throw invalid(fmt::format("dy {} and dc {} must be [T, N, H] and [N, H]", to_string(dy), to_string(state)));
  TensorType dz = {w.dtype, gates.shape};
  check_recurrence(dz, state, w, 4, in.subspan(6));
  Shape steps = {gates.shape[0], gates.shape[1], state.shape[1]};
  if (gates.dtype != wide(w.dtype) || in[3] != TensorType{gates.dtype, steps} || in[0] != state ||
      dy != TensorType{w.dtype, steps})
    throw invalid(fmt::format("gates {}, cells {}, c0 {} and dy {} do not have matching shapes and dtypes",
                              to_string(gates), to_string(in[3]), to_string(in[0]), to_string(dy)));
  return {state, state, dz};
}

Values decompose_grad(const Call& c) {
  DType t = c.in[0].dtype();
  Value c0 = wide(c.in[0]), w = wide(c.in[1]), gates = c.in[2], cells = c.in[3], dy = wide(c.in[4]);
  Value dc = wide(c.in[5]), dh = dc.like(0);
  int64_t n = dc.shape()[1];
  Steps steps(gates.shape()[0], c.a.i("reverse") != 0, c.in.subspan(6));
  Values dz;
  for (int64_t k = steps.count(); k-- > 0;) {
    Value a = steps.of(gates, k), i = gate(a, 0, n), f = gate(a, 1, n), g = gate(a, 2, n), o = gate(a, 3, n);
    Value tanh_c = tanh(steps.of(cells, k)), before = k == 0 ? c0 : steps.of(cells, k - 1);
    dh = dh + steps.of(dy, k);
    Value into = dc + dh * o * (1 - tanh_c * tanh_c);
    Value d = concat(
        {into * g * i * (1 - i), into * before * f * (1 - f), into * i * (1 - g * g), dh * tanh_c * o * (1 - o)}, 1);
    d = steps.live(k, d, d.like(0));
    dh = steps.live(k, matmul(d, w), dh);
    dc = steps.live(k, into * f, dc);
    dz.insert(dz.begin(), d);
  }
  return {cast(dh, t), cast(dc, t), cast(steps.joined(dz), t)};
}

std::vector<Shape> operands(int64_t t, int64_t n, int64_t h) { return {{n, h}, {n, h}, {4 * h, h}, {t, n, 4 * h}}; }

std::vector<Shape> operands_grad(int64_t t, int64_t n, int64_t h) {
  return {{n, h}, {4 * h, h}, {t, n, 4 * h}, {t, n, h}, {t, n, h}, {n, h}};
}

}  // namespace

const OpDef lstm_recurrence_op{
    .name = "lstm_recurrence",
    .doc =
        "[i, f, g, o] = z_t + h w_hh^T; c = sigmoid(f) c + sigmoid(i) tanh(g); h = sigmoid(o) tanh(c), over the steps "
        "of z [T, N, 4H] from h0 and c0 [N, H], last to first with reverse = 1; lengths i32 [N] may follow: a "
        "sequence's state stays after its length; y [T, N, H] = every h, c_n = the last c; gates [T, N, 4H] and cells "
        "[T, N, H] are for the gradient",
    .inputs = {"h0", "c0", "w_hh", "z", "lengths..."},
    .results = {"y", "c_n", "gates", "cells"},
    .attrs = {{"reverse", Ints{0}}},
    .infer = infer,
    .decompose = decompose,
    .vjp = vjp,
    .samples = recurrence_samples(operands)};

const OpDef lstm_recurrence_grad_op{
    .name = "lstm_recurrence_grad",
    .doc =
        "the gradients of lstm_recurrence to h0, c0 and z from its gates and cells and the cotangents of y and c_n; "
        "that of w_hh is the product of dz and the states before the steps",
    .inputs = {"c0", "w_hh", "gates", "cells", "dy", "dc_n", "lengths..."},
    .results = {"dh0", "dc0", "dz"},
    .attrs = {{"reverse", Ints{0}}},
    .infer = infer_grad,
    .decompose = decompose_grad,
    .samples = recurrence_grad_samples(operands_grad)};

}  // namespace tutti
