#include <fmt/format.h>

#include <limits>

#include "core/base/status.h"
#include "core/geometry/reduction.h"
#include "graph/op.h"
#include "graph/reduce.h"

namespace tutti {

// public
extern TUTTI_API const OpDef argmax_op;
/// The i32 index of the largest element over `axes` (all if empty), in row-major order over the reduced axes; of equal
/// elements the first; NaN counts as the largest.
inline Value argmax(Value x, Ints axes = {}, bool keep = false) {
  return call(argmax_op, {x}, {{"axes", std::move(axes)}, {"keep", Ints{keep}}});
}
// end of public

const OpDef argmax_op{
    .name = "argmax",
    .doc =
        "y (i32) = row-major index over `axes` (all when empty) of the largest element; the first of equal ones; "
        "NaN counts as largest",
    .inputs = {"x"},
    .attrs = reduce_attrs(),
    .ordered = true,
    .infer =
        [](std::span<const TensorType> in, const Attrs& a) {
          Types y = {{DType::i32, infer_choice(in, a)[0].shape}};
          int64_t count = reduction_geometry(in[0].shape, a, true).count;
          if (count > std::numeric_limits<int32_t>::max())
            throw invalid(fmt::format("cannot reduce {} elements: the index is i32, so the maximum is 2^31 - 1", count),
                          "reduce fewer elements at a time");
          return y;
        },
    .reference =
        [](std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
          std::vector<double> best(out[0].at.size()), visits(out[0].at.size());
          each_reduced(in[0], a, [&](size_t from, size_t to) {
            double x = in[0].at[from];
            bool better = x > best[to] || (x != x && best[to] == best[to]);
            if (visits[to] == 0 || better) {
              best[to] = x;
              out[0].at[to] = visits[to];
            }
            ++visits[to];
          });
        },
    .samples = reduce_samples({.low = -3, .high = 3, .distinct = true})};

}  // namespace tutti
