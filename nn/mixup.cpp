#include "nn/mixup.h"

#include <boost/math/special_functions/beta.hpp>
#include <vector>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/ops.h"
#include "nn/module.h"

namespace tutti::nn {
namespace {

constexpr int64_t positions = 4096;

/// The midpoints of `positions` intervals of equal probability.
std::vector<double> quantiles(double alpha) {
  std::vector<double> all;
  for (int64_t k = 0; k < positions; ++k)
    all.push_back(boost::math::ibeta_inv(alpha, alpha, (static_cast<double>(k) + 0.5) / positions));
  return all;
}

}  // namespace

void Mixup::check(double alpha) {
  if (alpha != 0 && !(alpha >= 0.01 && alpha <= 1000))
    throw invalid_option("mixup", alpha, "expected 0 or a number from 0.01 to 1000", "0.2 is usual");
}

Mixup Mixup::drawn(Value seed, Value step, int64_t n, double alpha, DType dtype) {
  Graph& g = seed.graph();
  Graph::Scope scope(g, "mixup");
  Value u = random_uniform(seed, step, {n}, stream_of("mixup"), 0, positions);
  Value place = cast(minimum(u, static_cast<double>(positions - 1)), DType::i32);  // u may be rounded up to `positions`
  return {gather(g.constant(dtype, quantiles(alpha)), place)};
}

Value Mixup::partner(Value x) const {
  Graph& g = x.graph();
  int64_t n = x.shape()[0];
  return gather(x, g.full(DType::i32, static_cast<double>(n - 1)) - iota(g, {n}, 0));
}

Value Mixup::sum(Value own, Value other) const {
  Shape rows(own.rank(), 1);
  rows[0] = share.shape()[0];
  Value s = reshape(cast(share, own.dtype()), rows);
  return s * own + (1 - s) * other;
}

}  // namespace tutti::nn
