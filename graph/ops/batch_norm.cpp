#include "graph/norm.h"
#include "graph/ops/add.h"
#include "graph/ops/batch_norm_dx.h"
#include "graph/ops/cast.h"
#include "graph/ops/mul.h"

namespace tutti {

// public
extern TUTTI_API const OpDef batch_norm_op;
/// x [N, C, …] normalized by the statistics of each channel over the batch (PyTorch in training): y = (x - mean) /
/// sqrt(variance + eps) * weight + bias, then mean [C] and the biased variance [C]. The caller updates running
/// statistics: running += momentum (statistic - running), where PyTorch multiplies the variance by n / (n - 1), n =
/// elements per channel. For f16 and bf16 the statistics are f32, weight and bias have x's dtype or f32.
/// `batch_norm_eval` takes given statistics.
TUTTI_API Values batch_norm(Value x, Value weight = {}, Value bias = {}, double eps = 1e-5);
// end of public
namespace {

Norm norm_of(const Shape& x, const Attrs& a) { return {batch_norm_geometry(x), a.f("eps"), true}; }

Types infer(std::span<const TensorType> in, const Attrs&) {
  return infer_norm(in, batch_norm_geometry(in[0].shape), 2, 2);
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  NormReference s = norm_reference(norm_of(in[0].shape(), a), in, out[0]);
  out[1].at = std::move(s.mean);
  out[2].at = std::move(s.variance);
}

Values decompose(const Call& c) {
  Normalized n = normalized(norm_of(c.in[0].shape(), c.a), c.in);
  return {n.y, n.mean, n.variance};
}

Values vjp(const VjpContext& g) {
  Values d(g.in.size());
  Value x = g.in[0], mean = g.out[1];
  if (g.d[0]) {
    Values in = {g.d[0], x, mean, g.out[2]};
    if (g.in.size() > 1) in.push_back(g.in[1]);
    Values back = call_all(batch_norm_dx_op, in, g.a);
    for (size_t k = 0; k < d.size(); ++k) d[k] = cast(back[k], g.in[k].dtype());
  }
  Value slope = g.d[2] ? g.d[2] * 2 : Value{};
  if (Value more = statistics_dx(norm_of(x.shape(), g.a), x, mean, g.d[1], slope)) d[0] = d[0] ? d[0] + more : more;
  return d;
}

}  // namespace

Values batch_norm(Value x, Value weight, Value bias, double eps) {
  return call_all(batch_norm_op, norm_inputs(x, weight, bias), {{"eps", Reals{eps}}});
}

const OpDef batch_norm_op{
    .name = "batch_norm",
    .doc =
        "y = (x - mean) / sqrt(variance + eps) * weight + bias; mean and biased variance of each channel of "
        "x [N, C, ...]; parameters: weight [C], bias [C], both optional; statistics are f32 for f16 and bf16",
    .inputs = {"x", "parameters..."},
    .results = {"y", "mean", "variance"},
    .attrs = {{"eps", Reals{1e-5}}},
    .infer = infer,
    .reference = reference,
    .decompose = decompose,
    .vjp = vjp,
    .samples = {{.shapes = {{6, 5}, {5}, {5}}},
                {.shapes = {{3, 4, 5}, {4}}, .attrs = {{"eps", Reals{0.1}}}},
                {.shapes = {{2, 3, 4, 5}}, .low = 30, .high = 33},
                {.shapes = {{4, 17, 9, 11}, {17}, {17}}}}};

}  // namespace tutti
