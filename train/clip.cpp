#include "train/clip.h"

#include "graph/functions.h"
#include "graph/ops/clamp.h"
#include "graph/ops/sqrt.h"
#include "graph/ops/sum.h"

namespace tutti {

void clip_by_value(Values& gradients, double limit) {
  for (Value& d : gradients)
    if (d) d = clamp(d, -limit, limit);
}

Value clip_by_global_norm(Values& gradients, double limit) {
  Value squares;
  for (const Value& d : gradients) {
    if (!d) continue;
    Value s = sum(d * d);
    squares = squares ? squares + s : s;
  }
  if (!squares) return {};
  Value norm = sqrt(squares), factor = minimum(limit / (norm + 1e-6), 1.0);
  for (Value& d : gradients)
    if (d) d = d * factor;
  return norm;
}

}  // namespace tutti
