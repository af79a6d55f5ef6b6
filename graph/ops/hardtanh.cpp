#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/op.h"
#include "graph/ops/less_equal.h"
#include "graph/ops/select.h"

namespace tutti {

// public
extern TUTTI_API const OpDef hardtanh_op;
/// y = x clamped to [low, high]; the gradient is 0 outside and on the bounds
inline Value hardtanh(Value x, double low = -1, double high = 1) {
  return call(hardtanh_op, {x}, {{"low", Reals{low}}, {"high", Reals{high}}});
}
// end of public

const OpDef hardtanh_op{
    .name = "hardtanh",
    .doc = "y = min(max(x, low), high), NaN where x is; the gradient is 1 where low < x < high and at NaN, else 0",
    .inputs = {"x"},
    .attrs = {{"low", Reals{-1}}, {"high", Reals{1}}},
    .expr =
        [](In x, const Attrs& a) {
          double low = a.f("low"), high = a.f("high");
          if (!(low <= high)) throw invalid(fmt::format("hardtanh: low = {} is above high = {}", low, high));
          return Exs{min(max(x[0], low), high)};
        },
    .vjp =
        [](const VjpContext& g) {  // y is on a bound exactly if x is on or beyond it; so x need not be kept
          Value y = g.out[0], zero = g.d[0].like(0);
          Value below = select(less_equal(y.like(g.a.f("high")), y), zero, g.d[0]);
          return Values{select(less_equal(y, y.like(g.a.f("low"))), zero, below)};
        },
    .samples =
        {{.shapes = {{3, 5}}, .low = -2, .high = 2, .kinks = {-1, 1}},
         {.shapes = {{3, 5}}, .low = -2, .high = 8, .attrs = {{"low", Reals{0}}, {"high", Reals{6}}}, .kinks = {0, 6}},
         {.shapes = {{0}}},
         {.shapes = {{65537}}, .low = -2, .high = 2, .kinks = {-1, 1}}}};

}  // namespace tutti
