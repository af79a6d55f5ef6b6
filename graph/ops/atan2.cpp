#include <limits>

#include "graph/angle.h"
#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/add.h"
#include "graph/ops/div.h"
#include "graph/ops/equal.h"
#include "graph/ops/mul.h"
#include "graph/ops/neg.h"
#include "graph/ops/select.h"
#include "graph/ops/sum.h"

namespace tutti {

// public
extern TUTTI_API const OpDef atan2_op;
/// The angle of the point (x, y) in [-pi, pi]; signed zeros and infinities as in C
inline Value atan2(Value y, Value x) { return call(atan2_op, {y, x}); }
// end of public
namespace {

/// Whether x is negative or -0.
Ex negative(Ex x) { return (x < 0) | (1 / x < 0); }

Exs value(In in, const Attrs&) {
  Ex y = in[0], x = in[1], n = abs(y), d = abs(x);
  double infinity = std::numeric_limits<double>::infinity();
  Ex far = equal(n, infinity) & equal(d, infinity), none = equal(n, 0) & equal(d, 0);
  n = select(far, 1, n);
  d = select(far | none, 1, d);
  Ex scale = select(max(n, d) > 1e30, n.like(0x1p-10), n.like(1));  // prevents overflow of n + d
  Ex angle = angle_of(n * scale, d * scale);
  angle = select(negative(x), 3.1415926535897932 - angle, angle);
  return {select(negative(y), -angle, angle)};
}

Values vjp(const VjpContext& g) {
  Value y = g.in[0], x = g.in[1], squares = y * y + x * x, zero = equal(squares, squares.like(0));
  Value d = select(zero, g.d[0].like(0), g.d[0] / select(zero, squares.like(1), squares));  // as PyTorch at (0, 0)
  return {sum_to(d * x, y.shape()), sum_to(-(d * y), x.shape())};
}

}  // namespace

const OpDef atan2_op{.name = "atan2",
                     .doc = "y = the angle of the point (b, a) in [-pi, pi]; 0 and infinity have signs as in C",
                     .inputs = {"a", "b"},
                     .expr = value,
                     .vjp = in_f32<vjp>,
                     .samples = {{.shapes = {{3, 5}, {3, 5}}, .low = -2, .high = 2},
                                 {.shapes = {{2, 1, 4}, {3, 1}}, .low = -2, .high = 2},
                                 {.shapes = {{0}, {1}}},
                                 {.shapes = {{257, 129}, {129}}, .low = -2, .high = 2}}};

}  // namespace tutti
