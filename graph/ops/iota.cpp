#include <fmt/format.h>

#include <limits>

#include "core/base/status.h"
#include "core/geometry/index.h"
#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef iota_op;
/// i32: every element is its index along `axis`.
inline Value iota(Graph& g, Shape shape, int64_t axis = 0) {
  return g.add(iota_op, {}, {{"shape", std::move(shape)}, {"axis", Ints{axis}}})[0];
}
// end of public

const OpDef iota_op{
    .name = "iota",
    .doc = "y (i32) of `shape` = the position along `axis`",
    .inputs = {},
    .attrs = {{"shape", Ints{1}}, {"axis", Ints{0}}},
    .ordered = true,
    .infer =
        [](std::span<const TensorType>, const Attrs& a) {
          const Shape& y = a.ints("shape");
          int64_t size = y[static_cast<size_t>(normalize_axis(a.i("axis"), y.size()))];
          if (size > std::numeric_limits<int32_t>::max())
            throw invalid(
                fmt::format("an axis of {} elements is too long: positions are i32, so the maximum is 2^31 - 1", size));
          return Types{{DType::i32, a.ints("shape")}};
        },
    .reference =
        [](std::span<const Tensor>, std::span<Tensor> out, const Attrs& a) {
          AxisGeometry g = axis_geometry(out[0].shape(), a.i("axis"));
          auto step = static_cast<size_t>(g.inner), size = static_cast<size_t>(g.size);
          for (size_t i = 0; i < out[0].at.size(); ++i) out[0].at[i] = static_cast<double>(i / step % size);
        },
    .samples = {{.shapes = {}, .attrs = {{"shape", Ints{7}}}},
                {.shapes = {}, .attrs = {{"shape", Ints{2, 3, 4}}, {"axis", Ints{-2}}}},
                {.shapes = {}, .attrs = {{"shape", Ints{0}}}}}};

}  // namespace tutti
