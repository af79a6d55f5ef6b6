#include "graph/functions/attention.h"

#include <fmt/format.h>

#include <cmath>

#include "core/base/status.h"
#include "graph/in_f32.h"
#include "graph/ops/add.h"
#include "graph/ops/cast.h"
#include "graph/ops/concat.h"
#include "graph/ops/cos.h"
#include "graph/ops/exp.h"
#include "graph/ops/iota.h"
#include "graph/ops/mul.h"
#include "graph/ops/reshape.h"
#include "graph/ops/sin.h"
#include "graph/ops/slice.h"
#include "graph/ops/sub.h"

namespace tutti {

Value rotary(Value x, const RotaryOptions& o) {
  const Shape s = x.shape();
  if (s.size() != 4 || s[3] < 2 || s[3] % 2 != 0 || !is_float(x.dtype()))
    throw invalid(fmt::format("rotary: x is {}, expected floats [B, H, T, D] with an even D", to_string(x.type())));
  if (!(o.base > 0)) throw invalid(fmt::format("rotary: base is {}, but must be above 0", o.base));
  Shape rows = {s[0], s[1], s[2]};
  if (o.positions && (o.positions.dtype() != DType::i32 || o.positions.rank() < 1 || o.positions.rank() > 3 ||
                      broadcast_shapes(o.positions.shape(), rows) != rows))
    throw invalid(fmt::format("rotary: positions {} must be i32 and broadcast to {}", to_string(o.positions.type()),
                              to_string(rows)));
  Graph& g = x.graph();
  DType t = wide(x.dtype());
  int64_t half = s[3] / 2;
  Value place = cast(o.positions ? o.positions : iota(g, {s[2]}), t);
  if (!o.positions && o.offset != 0) place = place + static_cast<double>(o.offset);
  Shape column = place.shape();
  column.push_back(1);
  Value frequency = exp(cast(iota(g, {half}), t) * (-std::log(o.base) / static_cast<double>(half)));
  Value angle = reshape(place, column) * frequency, c = cos(angle), n = sin(angle);
  Value wide_x = wide(x);
  if (!o.interleaved) {
    Value a = slice(wide_x, {0, 0, 0, 0}, {s[0], s[1], s[2], half}), b = slice(wide_x, {0, 0, 0, half}, s);
    return cast(concat({a * c - b * n, b * c + a * n}, 3), x.dtype());
  }
  Shape pair = {s[0], s[1], s[2], half, 1};
  Value a = reshape(slice(wide_x, {0, 0, 0, 0}, s, {1, 1, 1, 2}), {s[0], s[1], s[2], half});
  Value b = reshape(slice(wide_x, {0, 0, 0, 1}, s, {1, 1, 1, 2}), {s[0], s[1], s[2], half});
  return cast(reshape(concat({reshape(a * c - b * n, pair), reshape(b * c + a * n, pair)}, 4), s), x.dtype());
}

}  // namespace tutti
