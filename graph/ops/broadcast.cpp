#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/ops.h"
//: /// x repeated to `shape` by NumPy's rule; x itself when it has that shape already.
//: inline Value broadcast(Value x, const Shape& shape) { return x.shape() == shape ? x : call(broadcast_op, {x}, {{"shape", shape}}); }

namespace tutti {
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  const Shape& shape = a.ints("shape");
  if (broadcast_shapes(in[0].shape, shape) != shape)
    throw invalid(fmt::format("{} does not broadcast to {}", to_string(in[0].shape), to_string(shape)));
  return {{in[0].dtype, shape}};
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs&) {
  Shape from = broadcast_strides(in[0].shape(), out[0].shape()), to = strides_of(out[0].shape());
  for (size_t i = 0; i < out[0].at.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), k = 0;
    for (size_t d = 0; d < to.size(); ++d) {
      k += rest / to[d] * from[d];
      rest %= to[d];
    }
    out[0].at[i] = in[0].at[static_cast<size_t>(k)];
  }
}

}  // namespace

const OpDef broadcast_op{.name = "broadcast",
                         .doc = "y = x repeated to `shape` by NumPy's rule",
                         .inputs = {"x"},
                         .attrs = {{"shape", Ints{}}},
                         .infer = infer,
                         .reference = reference,
                         .vjp = [](const Pull& g) { return Values{sum_to(g.d[0], g.in[0].shape())}; },
                         .samples = {{.shapes = {{3, 1}}, .attrs = {{"shape", Ints{2, 3, 4}}}},
                                     {.shapes = {{}}, .attrs = {{"shape", Ints{5}}}},
                                     {.shapes = {{1, 3}}, .attrs = {{"shape", Ints{0, 3}}}},
                                     {.shapes = {{129, 1}}, .attrs = {{"shape", Ints{5, 129, 33}}}}}};

}  // namespace tutti
