#include <cmath>

#include "graph/norm.h"
#include "graph/ops/add.h"
#include "graph/ops/cast.h"
#include "graph/ops/layer_norm_dx.h"
#include "graph/ops/mul.h"
#include "graph/ops/neg.h"

namespace tutti {

// public
extern TUTTI_API const OpDef layer_norm_op;
/// y = (x - mean) * rstd * weight + bias, with mean and rstd = 1 / sqrt(variance + eps) over the last axes, of sizes
/// `normalized_shape`, which is also the shape of weight and bias. For f16 and bf16 the statistics are f32, weight and
/// bias have x's dtype or f32.
TUTTI_API Value layer_norm(Value x, Ints normalized_shape, Value weight = {}, Value bias = {}, double eps = 1e-5);
// end of public
namespace {

Norm norm_of(const Shape& x, const Attrs& a) { return {layer_norm_geometry(x, a), a.f("eps"), true}; }

Types infer(std::span<const TensorType> in, const Attrs& a) {
  return infer_norm(in, layer_norm_geometry(in[0].shape, a), 2, 2);
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  NormReference s = norm_reference(norm_of(in[0].shape(), a), in, out[0]);
  for (size_t l = 0; l < s.variance.size(); ++l) out[2].at[l] = 1 / std::sqrt(s.variance[l] + a.f("eps"));
  out[1].at = std::move(s.mean);
}

Values decompose(const Call& c) {
  Normalized n = normalized(norm_of(c.in[0].shape(), c.a), c.in);
  return {n.y, n.mean, n.rstd};
}

Values vjp(const VjpContext& g) {
  Values d(g.in.size());
  Value x = g.in[0], mean = g.out[1], rstd = g.out[2];
  if (g.d[0]) {
    Values in = {g.d[0], x, mean, rstd};
    if (g.in.size() > 1) in.push_back(g.in[1]);
    Values back = call_all(layer_norm_dx_op, in, {{"normalized_shape", g.a.ints("normalized_shape")}});
    for (size_t k = 0; k < d.size(); ++k) d[k] = cast(back[k], g.in[k].dtype());
  }
  Value slope = g.d[2] ? -g.d[2] * (rstd * rstd * rstd) : Value{};
  if (Value more = statistics_dx(norm_of(x.shape(), g.a), x, mean, g.d[1], slope)) d[0] = d[0] ? d[0] + more : more;
  return d;
}

}  // namespace

Value layer_norm(Value x, Ints normalized_shape, Value weight, Value bias, double eps) {
  return call(layer_norm_op, norm_inputs(x, weight, bias),
              {{"normalized_shape", std::move(normalized_shape)}, {"eps", Reals{eps}}});
}

const OpDef layer_norm_op{
    .name = "layer_norm",
    .doc =
        "y = (x - mean) rstd * weight + bias; mean and rstd = 1 / sqrt(variance + eps) over the last axes, of sizes "
        "normalized_shape; parameters: weight and bias of that shape, both optional; statistics are f32 for f16 and "
        "bf16",
    .inputs = {"x", "parameters..."},
    .results = {"y", "mean", "rstd"},
    .attrs = {{"normalized_shape", Ints{}}, {"eps", Reals{1e-5}}},
    .infer = infer,
    .reference = reference,
    .decompose = decompose,
    .vjp = vjp,
    .samples = {{.shapes = {{4, 6}, {6}, {6}}, .attrs = {{"normalized_shape", Ints{6}}}},
                {.shapes = {{2, 3, 4, 2}, {4, 2}}, .attrs = {{"normalized_shape", Ints{4, 2}}, {"eps", Reals{0.1}}}},
                {.shapes = {{3, 2, 5}}, .low = 30, .high = 33, .attrs = {{"normalized_shape", Ints{5}}}},
                {.shapes = {{0, 3}, {3}, {3}}, .attrs = {{"normalized_shape", Ints{3}}}},
                {.shapes = {{19, 197}, {197}, {197}}, .attrs = {{"normalized_shape", Ints{197}}}}}};

}  // namespace tutti
