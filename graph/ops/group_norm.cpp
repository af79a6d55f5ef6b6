#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/norm.h"
#include "graph/ops/add.h"
#include "graph/ops/cast.h"
#include "graph/ops/layer_norm.h"
#include "graph/ops/mul.h"
#include "graph/ops/reshape.h"

namespace tutti {

// public
extern TUTTI_API const OpDef group_norm_op;
/// Normalizes each sample's channels in `groups` groups by the statistics of the group: y = (x - mean) / sqrt(variance
/// + eps) * weight + bias, x [N, C, …], weight and bias [C].
TUTTI_API Value group_norm(Value x, int64_t groups, Value weight = {}, Value bias = {}, double eps = 1e-5);
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  const Shape& x = in[0].shape;
  int64_t groups = a.i("groups");
  if (x.size() < 2 || groups < 1 || x[1] % groups != 0)
    throw invalid(fmt::format("x {} cannot be normalized in {} groups", to_string(x), groups),
                  "x must be [N, C, ...], and the number of groups must divide C");
  NormGeometry g;
  g.parameters = {x[1]};
  return infer_norm(in, g, 0, 2);
}

Values decompose(const Call& c) {
  const Shape& shape = c.in[0].shape();
  int64_t groups = c.a.i("groups"), lines = shape[0] * groups, size = num_elements(shape) / std::max<int64_t>(lines, 1);
  Value x = reshape(widened(c.in[0]), {lines, size});
  Value y = reshape(layer_norm(x, {size}, {}, {}, c.a.f("eps")), shape);
  Shape channels(shape.size() - 1, 1);
  channels[0] = shape[1];
  if (c.in.size() > 1) y = y * reshape(widened(c.in[1]), channels);
  if (c.in.size() > 2) y = y + reshape(widened(c.in[2]), channels);
  return {cast(y, c.in[0].dtype())};
}

}  // namespace

Value group_norm(Value x, int64_t groups, Value weight, Value bias, double eps) {
  return call(group_norm_op, norm_inputs(x, weight, bias), {{"groups", Ints{groups}}, {"eps", Reals{eps}}});
}

const OpDef group_norm_op{
    .name = "group_norm",
    .doc =
        "y = (x - mean) / sqrt(variance + eps) * weight + bias; mean and variance of each of `groups` groups of the "
        "channels of each sample of x [N, C, ...]; parameters: weight [C], bias [C], both optional",
    .inputs = {"x", "parameters..."},
    .attrs = {{"groups", Ints{1}}, {"eps", Reals{1e-5}}},
    .infer = infer,
    .decompose = decompose,
    .samples = {{.shapes = {{2, 6, 3, 2}, {6}, {6}}, .attrs = {{"groups", Ints{3}}}},
                {.shapes = {{3, 4, 5}, {4}}, .attrs = {{"groups", Ints{4}}, {"eps", Reals{0.1}}}},
                {.shapes = {{0, 4, 3}, {4}, {4}}, .attrs = {{"groups", Ints{2}}}}}};

}  // namespace tutti
