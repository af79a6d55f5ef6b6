// The recurrence of a GRU and its gradient, in PyTorch's form: the reset gate is applied to the product with the state
// plus its bias. The parts independent of the state are matmuls over all steps outside of it
// (graph/functions/recurrent.h).
#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/add.h"
#include "graph/ops/cast.h"
#include "graph/ops/concat.h"
#include "graph/ops/matmul.h"
#include "graph/ops/mul.h"
#include "graph/ops/sigmoid.h"
#include "graph/ops/slice.h"
#include "graph/ops/sub.h"
#include "graph/ops/sum.h"
#include "graph/ops/tanh.h"
#include "graph/recurrent.h"

namespace tutti {

// public
extern TUTTI_API const OpDef gru_recurrence_op;
extern TUTTI_API const OpDef gru_recurrence_grad_op;
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs&) {
  const TensorType &h0 = in[0], &b = in[2], &z = in[3];
  check_recurrence(z, h0, in[1], 3, in.subspan(4));
  if (b != TensorType{z.dtype, {z.shape[2]}})
    throw invalid(fmt::format("b_hh must be {}, got {}", to_string({z.dtype, {z.shape[2]}}), to_string(b)));
  Shape y = {z.shape[0], z.shape[1], h0.shape[1]}, gates = {y[0], y[1], 4 * y[2]};
  return {{z.dtype, y}, {wide(z.dtype), gates}};
}

Values decompose(const Call& c) {
  DType t = c.in[0].dtype();
  Value h = wide(c.in[0]), w = wide(c.in[1]), b = wide(c.in[2]), z = wide(c.in[3]);
  int64_t n = h.shape()[1], rows = h.shape()[0];
  Steps steps(z.shape()[0], c.a.i("reverse") != 0, c.in.subspan(4));
  Values y, gates;
  for (int64_t k = 0; k < steps.count(); ++k) {
    Value of_x = steps.of(z, k), of_h = matmul(h, w, false, true) + b;
    Value ru = sigmoid(slice(of_x, {0, 0}, {rows, 2 * n}) + slice(of_h, {0, 0}, {rows, 2 * n}));
    Value r = gate(ru, 0, n), u = gate(ru, 1, n), inner = gate(of_h, 2, n);
    Value fresh = tanh(gate(of_x, 2, n) + r * inner);
    h = steps.live(k, fresh + u * (h - fresh), h);
    y.push_back(h);
    gates.push_back(concat({ru, fresh, inner}, 1));
  }
  return {cast(steps.joined(y), t), steps.joined(gates)};
}

/// The gradients of both kinds of gates; the other gradients are matmuls over all steps.
Values vjp(const VjpContext& g) {
  if (g.d[1]) return derive_from_decomposition(gru_recurrence_op, g);  // of intermediates: second derivatives
  Values in = {g.in[0], g.in[1], g.out[1], g.out[0], g.cotangent(0)};
  in.insert(in.end(), g.in.begin() + 4, g.in.end());
  Values d = call_all(gru_recurrence_grad_op, in, g.a);
  Values back = {d[0], {}, {}, d[1]};
  back.resize(g.in.size());
  Steps steps(g.in[3].shape()[0], g.a.i("reverse") != 0, {});
  if (g.wants[1]) back[1] = matmul(rows_of(d[2]), rows_of(steps.before(g.out[0], g.in[0])), true);
  if (g.wants[2]) back[2] = sum(d[2], {0, 1});
  return back;
}

Types infer_grad(std::span<const TensorType> in, const Attrs&) {
  const TensorType &h0 = in[0], &w = in[1], &gates = in[2], &y = in[3];
  if (y.shape.size() != 3 || h0.shape.size() != 2)
    throw invalid(fmt::format("y {} and h0 {} must be [T, N, H] and [N, H]", to_string(y), to_string(h0)));
  int64_t n = h0.shape[1];
  num_elements(Ints{4, n});  // throws if the products below would overflow
  TensorType dz = {w.dtype, {y.shape[0], y.shape[1], 3 * n}};
  check_recurrence(dz, h0, w, 3, in.subspan(5));
  if (gates != TensorType{wide(w.dtype), {y.shape[0], y.shape[1], 4 * n}} || in[4] != y || y.dtype != w.dtype ||
      y.shape[2] != n)
    throw invalid(fmt::format("gates {}, y {} and dy {} do not have matching shapes and dtypes", to_string(gates),
                              to_string(y), to_string(in[4])));
  return {h0, dz, dz};
}

Values decompose_grad(const Call& c) {
  DType t = c.in[0].dtype();
  Value h0 = wide(c.in[0]), w = wide(c.in[1]), gates = c.in[2], y = wide(c.in[3]), dy = wide(c.in[4]);
  Value dh = h0.like(0);
  int64_t n = h0.shape()[1];
  Steps steps(y.shape()[0], c.a.i("reverse") != 0, c.in.subspan(5));
  Values of_x, of_h;
  for (int64_t k = steps.count(); k-- > 0;) {
    Value a = steps.of(gates, k), r = gate(a, 0, n), u = gate(a, 1, n), fresh = gate(a, 2, n), inner = gate(a, 3, n);
    Value before = k == 0 ? h0 : steps.of(y, k - 1);
    dh = dh + steps.of(dy, k);
    Value dn = dh * (1 - u) * (1 - fresh * fresh);
    Value ru = concat({dn * inner * r * (1 - r), dh * (before - fresh) * u * (1 - u)}, 1);
    Value x = concat({ru, dn}, 1), h = concat({ru, dn * r}, 1);
    x = steps.live(k, x, x.like(0));
    h = steps.live(k, h, h.like(0));
    dh = steps.live(k, dh * u + matmul(h, w), dh);
    of_x.insert(of_x.begin(), x);
    of_h.insert(of_h.begin(), h);
  }
  return {cast(dh, t), cast(steps.joined(of_x), t), cast(steps.joined(of_h), t)};
}

std::vector<Shape> operands(int64_t t, int64_t n, int64_t h) { return {{n, h}, {3 * h, h}, {3 * h}, {t, n, 3 * h}}; }

std::vector<Shape> operands_grad(int64_t t, int64_t n, int64_t h) {
  return {{n, h}, {3 * h, h}, {t, n, 4 * h}, {t, n, h}, {t, n, h}};
}

}  // namespace

const OpDef gru_recurrence_op{
    .name = "gru_recurrence",
    .doc =
        "[a, b, c] = h w_hh^T + b_hh; r = sigmoid(z_r + a), u = sigmoid(z_u + b), n = tanh(z_n + r c), h = n + u (h - "
        "n), over the steps of z = [z_r, z_u, z_n] [T, N, 3H] from h0 [N, H], last to first with reverse = 1; lengths "
        "i32 [N] may follow: a sequence's state stays after its length; y [T, N, H] = every h; gates [T, N, 4H] = [r, "
        "u, n, c] is for the gradient",
    .inputs = {"h0", "w_hh", "b_hh", "z", "lengths..."},
    .results = {"y", "gates"},
    .attrs = {{"reverse", Ints{0}}},
    .infer = infer,
    .decompose = decompose,
    .vjp = vjp,
    .samples = recurrence_samples(operands)};

const OpDef gru_recurrence_grad_op{
    .name = "gru_recurrence_grad",
    .doc =
        "the gradients of gru_recurrence to h0, to z and to the products with the state from its gates, its y and the "
        "cotangent of y; that of w_hh is the product of dp and the states before the steps, that of b_hh the sum of dp",
    .inputs = {"h0", "w_hh", "gates", "y", "dy", "lengths..."},
    .results = {"dh0", "dz", "dp"},
    .attrs = {{"reverse", Ints{0}}},
    .infer = infer_grad,
    .decompose = decompose_grad,
    .samples = recurrence_grad_samples(operands_grad)};

}  // namespace tutti
