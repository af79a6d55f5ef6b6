#include <cmath>

#include "graph/norm.h"
#include "graph/ops/add.h"
#include "graph/ops/rsqrt.h"

namespace tutti {

// public
extern TUTTI_API const OpDef batch_norm_dx_op;
// end of public
namespace {

Norm norm_of(const Shape& x, const Attrs& a) { return {batch_norm_geometry(x), a.f("eps"), true}; }

Types infer(std::span<const TensorType> in, const Attrs&) {
  return infer_norm_dx(in, batch_norm_geometry(in[1].shape), 2);
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  std::vector<double> rstd;
  for (double v : in[3].at) rstd.push_back(1 / std::sqrt(v + a.f("eps")));
  norm_dx_reference(norm_of(in[1].shape(), a), in[0], in[1], in[2].at, rstd, in.size() > 4 ? &in[4] : nullptr, out);
}

Values decompose(const Call& c) {
  Value rstd = rsqrt(widened(c.in[3]) + c.a.f("eps"));
  return norm_dx(norm_of(c.in[1].shape(), c.a), c.in[0], c.in[1], c.in[2], rstd, c.in.size() > 4 ? c.in[4] : Value{});
}

Sample sample(Shape x, size_t inputs, Reals eps) {
  Shape c = {x[1]};
  std::vector<Shape> shapes = {x, x, c, c, c};
  shapes.resize(inputs);
  return {.shapes = std::move(shapes),
          .attrs = {{"eps", std::move(eps)}},
          .ranges = {{-1, 1}, {-1, 1}, {-0.1, 0.1}, {0.3, 0.6}}};
}

}  // namespace

const OpDef batch_norm_dx_op{
    .name = "batch_norm_dx",
    .doc =
        "the gradients of batch_norm for the cotangent d of y: with n = (x - mean) rstd and rstd = 1 / sqrt(variance + "
        "eps), dx = weight rstd (d - mean of d - n mean of (d n)), dweight = sum of d n, dbias = sum of d over each "
        "channel; the weight is optional",
    .inputs = {"d", "x", "mean", "variance", "weight..."},
    .results = {"dx", "dweight", "dbias"},
    .attrs = {{"eps", Reals{1e-5}}},
    .infer = infer,
    .reference = reference,
    .decompose = decompose,
    .samples = {sample({6, 5}, 5, {1e-5}), sample({3, 4, 5}, 4, {0.1}), sample({4, 17, 9, 11}, 5, {1e-5})}};

}  // namespace tutti
