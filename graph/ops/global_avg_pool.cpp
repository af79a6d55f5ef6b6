#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/op.h"
#include "graph/ops/mean.h"

namespace tutti {

// public
extern TUTTI_API const OpDef global_avg_pool_op;
/// The mean over height and width, which are kept with size 1: [N, C, H, W] to [N, C, 1, 1].
inline Value global_avg_pool(Value x) { return call(global_avg_pool_op, {x}); }
// end of public

const OpDef global_avg_pool_op{
    .name = "global_avg_pool",
    .doc = "y = the mean of x [N, C, H, W] over H and W, which stay with size 1",
    .inputs = {"x"},
    .infer =
        [](std::span<const TensorType> in, const Attrs&) {
          const Shape& x = in[0].shape;
          if (x.size() != 4) throw invalid(fmt::format("images {} need 4 dimensions, [N, C, H, W]", to_string(x)));
          return Types{{in[0].dtype, {x[0], x[1], 1, 1}}};
        },
    .decompose =
        [](const Call& c) {
          return Values{mean(c.in[0], {2, 3}, true)};
        },
    .samples = {{.shapes = {{2, 3, 5, 4}}},
                {.shapes = {{1, 2, 1, 1}}},
                {.shapes = {{0, 2, 3, 3}}},
                {.shapes = {{2, 65, 7, 7}}}}};

}  // namespace tutti
