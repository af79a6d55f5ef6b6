#include "train/step/divided.h"

#include "graph/ops/concat.h"
#include "graph/ops/reshape.h"
#include "graph/ops/slice.h"

namespace tutti {
namespace {

constexpr int64_t norm_exchange = 0, finite_exchange = 1;  // numbers, in an update program

}  // namespace

Values sums_of_owners(Graph& g, const Division& division, const std::vector<nn::Parameter>& parameters, Values sums) {
  std::vector<size_t> divided;
  Values mine;
  for (size_t k = 0; k < sums.size(); ++k) {
    const nn::Parameter& p = parameters[k];
    if (!division.contains(p.name)) continue;
    divided.push_back(k);
    mine.push_back(sums[k] ? reshape(sums[k], {1}) : g.full(p.type.dtype, 0, {1}));
  }
  if (divided.empty()) return sums;
  const Value one = mine.size() == 1 ? mine[0] : concat(mine, 0);
  const Value all = exchange(g, one, {.number = norm_exchange, .owner = Exchange::all_ranks, .type = one.type()});
  for (size_t i = 0; i < divided.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    sums[divided[i]] = reshape(slice(all, {at}, {at + 1}), {});
  }
  return sums;
}

Value sum_of_ranks(const Division& division, Value mine) {
  if (division.owner.empty()) return mine;
  return exchange(mine.graph(), mine, {.number = finite_exchange, .owner = Exchange::all_ranks, .type = mine.type()});
}

}  // namespace tutti
