#include <fmt/format.h>
#include <cmath>
#include <limits>

#include "core/base/status.h"
#include "graph/op.h"
#include "graph/ops/less.h"
#include "graph/ops/select.h"

namespace tutti {

// public
extern TUTTI_API const OpDef clamp_op;
/// y = x clamped to [low, high]; bounds may be infinite. The gradient is 1 between the bounds, 0 on them and outside.
inline Value clamp(Value x, double low, double high) {
  return call(clamp_op, {x}, {{"low", Reals{low}}, {"high", Reals{high}}});
}
// end of public
namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
}

const OpDef clamp_op{
    .name = "clamp",
    .doc = "y = min(max(x, low), high), NaN where x is; the gradient is 1 where low < x < high, else 0",
    .inputs = {"x"},
    .attrs = {{"low", Reals{-infinity}}, {"high", Reals{infinity}}},
    .expr =
        [](In x, const Attrs& a) {
          double low = a.f("low"), high = a.f("high");
          if (!(low <= high)) throw invalid(fmt::format("low = {} must be below high = {}", low, high));
          Ex y = x[0];
          if (std::isfinite(low)) y = max(y, low);
          if (std::isfinite(high)) y = min(y, high);
          return Exs{y};
        },
    .vjp =
        [](const VjpContext& g) {
          Value x = g.in[0], d = g.d[0];
          double low = g.a.f("low"), high = g.a.f("high");
          if (std::isfinite(low)) d = select(less(x.like(low), x), d, d.like(0));
          if (std::isfinite(high)) d = select(less(x, x.like(high)), d, d.like(0));
          return Values{d};
        },
    .samples = {{.shapes = {{3, 5}},
                 .low = -2,
                 .high = 2,
                 .attrs = {{"low", Reals{-0.7}}, {"high", Reals{1.1}}},
                 .kinks = {-0.7, 1.1}},
                {.shapes = {{3, 5}}, .low = -2, .high = 2, .attrs = {{"low", Reals{0.2}}}, .kinks = {0.2}},
                {.shapes = {{0}}, .attrs = {{"high", Reals{0.5}}}},
                {.shapes = {{65537}},
                 .low = -2,
                 .high = 2,
                 .attrs = {{"low", Reals{-0.7}}, {"high", Reals{1.1}}},
                 .kinks = {-0.7, 1.1}}}};

}  // namespace tutti
