#include <cmath>
#include <limits>

#include "graph/norm.h"
#include "graph/ops/add.h"
#include "graph/ops/cast.h"
#include "graph/ops/mul.h"
#include "graph/ops/neg.h"
#include "graph/ops/rms_norm_dx.h"

namespace tutti {

// public
extern TUTTI_API const OpDef rms_norm_op;
/// y = x * rstd * weight, rstd = 1 / sqrt(mean of x^2 + eps) over the last axes, of sizes `normalized_shape`. `eps`
/// defaults to the machine epsilon of the statistics' dtype, which is f32 for f16 and bf16.
TUTTI_API Value rms_norm(Value x, Ints normalized_shape, Value weight = {}, std::optional<double> eps = {});
// end of public
namespace {

Norm norm_of(const Shape& x, const Attrs& a) { return {layer_norm_geometry(x, a), a.f("eps"), false}; }

Types infer(std::span<const TensorType> in, const Attrs& a) {
  return infer_norm(in, layer_norm_geometry(in[0].shape, a), 1, 1);
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  NormReference s = norm_reference(norm_of(in[0].shape(), a), in, out[0]);
  for (size_t l = 0; l < s.variance.size(); ++l) out[1].at[l] = 1 / std::sqrt(s.variance[l] + a.f("eps"));
}

Values decompose(const Call& c) {
  Normalized n = normalized(norm_of(c.in[0].shape(), c.a), c.in);
  return {n.y, n.rstd};
}

Values vjp(const VjpContext& g) {
  Values d(g.in.size());
  Value x = g.in[0], rstd = g.out[1];
  if (g.d[0]) {
    Values in = {g.d[0], x, rstd};
    if (g.in.size() > 1) in.push_back(g.in[1]);
    Values back = call_all(rms_norm_dx_op, in, {{"normalized_shape", g.a.ints("normalized_shape")}});
    for (size_t k = 0; k < d.size(); ++k) d[k] = cast(back[k], g.in[k].dtype());
  }
  Value slope = g.d[1] ? -g.d[1] * (rstd * rstd * rstd) : Value{};
  if (Value more = statistics_dx(norm_of(x.shape(), g.a), x, {}, {}, slope)) d[0] = d[0] ? d[0] + more : more;
  return d;
}

}  // namespace

Value rms_norm(Value x, Ints normalized_shape, Value weight, std::optional<double> eps) {
  double least = x.dtype() == DType::f64 ? std::numeric_limits<double>::epsilon()
                                         : static_cast<double>(std::numeric_limits<float>::epsilon());
  return call(rms_norm_op, norm_inputs(x, weight, {}),
              {{"normalized_shape", std::move(normalized_shape)}, {"eps", Reals{eps.value_or(least)}}});
}

const OpDef rms_norm_op{
    .name = "rms_norm",
    .doc =
        "y = x rstd * weight; rstd = 1 / sqrt(mean of x^2 + eps) over the last axes, of sizes normalized_shape; "
        "parameters: weight of that shape, optional; statistics are f32 for f16 and bf16",
    .inputs = {"x", "parameters..."},
    .results = {"y", "rstd"},
    .attrs = {{"normalized_shape", Ints{}}, {"eps", Reals{1e-6}}},
    .infer = infer,
    .reference = reference,
    .decompose = decompose,
    .vjp = vjp,
    .samples = {{.shapes = {{2, 3, 4, 2}}, .attrs = {{"normalized_shape", Ints{4, 2}}, {"eps", Reals{0.1}}}},
                {.shapes = {{19, 197}, {197}}, .attrs = {{"normalized_shape", Ints{197}}}}}};

}  // namespace tutti
