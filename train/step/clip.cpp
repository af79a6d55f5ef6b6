#include "train/step/clip.h"

#include "graph/functions.h"
#include "graph/ops/clamp.h"
#include "graph/ops/sqrt.h"
#include "graph/ops/sum.h"

namespace tutti {

void clip_by_value(Values& gradients, double limit) {
  for (Value& d : gradients)
    if (d) d = clamp(d, -limit, limit);
}

Value global_norm(const Values& gradients, const OfAllRanks& all) {
  Values sums;
  for (const Value& d : gradients) sums.push_back(d ? sum(d * d) : Value());
  if (all) sums = all(sums);
  Value squares;
  for (const Value& s : sums)
    if (s) squares = squares ? squares + s : s;
  return squares ? sqrt(squares) : Value();
}

void clip_by_global_norm(Values& gradients, double limit, const OfAllRanks& all) {
  Value norm = global_norm(gradients, all);
  if (!norm) return;
  Value factor = minimum(limit / (norm + 1e-6), 1.0);
  for (Value& d : gradients)
    if (d) d = d * factor;
}

}  // namespace tutti
