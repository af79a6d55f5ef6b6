#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef reshape_op;
/// The same elements in row-major order with another shape; one dimension may be -1, which is inferred.
inline Value reshape(Value x, Shape shape) { return call(reshape_op, {x}, {{"shape", std::move(shape)}}); }
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  Shape shape = a.ints("shape");
  int64_t *open = nullptr, have = num_elements(in[0].shape);
  for (int64_t& d : shape) {
    if (d == -1 && !open)
      open = &d;
    else if (d < 0)
      throw invalid(
          fmt::format("shape {}: every dimension must be >= 0, except for at most one -1", to_string(a.ints("shape"))));
  }
  if (open) {
    *open = 1;
    int64_t known = num_elements(shape);
    *open = known == 0 ? 0 : have / known;
  }
  if (num_elements(shape) != have)
    throw invalid(fmt::format("{} elements cannot be reshaped to {}", have, to_string(a.ints("shape"))));
  return {{in[0].dtype, shape}};
}

}  // namespace

const OpDef reshape_op{
    .name = "reshape",
    .doc = "y has the elements of x in row-major order; one dimension of `shape` may be -1",
    .inputs = {"x"},
    .attrs = {{"shape", Ints{}}},
    .ordered = true,
    .infer = infer,
    .reference = [](std::span<const Tensor> in, std::span<Tensor> out, const Attrs&) { out[0].at = in[0].at; },
    .vjp = [](const VjpContext& g) { return Values{reshape(g.d[0], g.in[0].shape())}; },
    .samples = {{.shapes = {{2, 6}}, .attrs = {{"shape", Ints{3, -1}}}},
                {.shapes = {{1}}, .attrs = {{"shape", Ints{}}}},
                {.shapes = {{0, 3}}, .attrs = {{"shape", Ints{3, 0}}}},
                {.shapes = {{65, 33}}, .attrs = {{"shape", Ints{33, 5, 13}}}}}};

}  // namespace tutti
