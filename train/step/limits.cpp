#include "train/step/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/status.h"
#include "graph/index_limit.h"
#include "graph/intervals.h"

namespace tutti {
namespace {

/// Finds the largest numbers in the unlimited columns with which no exact integer leaves its range.
class Widest {
 public:
  Widest(const Graph& g, const Batch& batch, const std::map<std::string, Limit>& limits) : g_(g), batch_(batch) {
    for (const auto& [column, v] : batch.read()) {
      auto it = limits.find(column);
      if (it != limits.end())
        inputs_[v.id()] = {static_cast<double>(it->second.low), static_cast<double>(it->second.end - 1)};
      else if (v.dtype() == DType::i32)
        free_.emplace_back(column, v.id());
      if (it != limits.end() && it->second.except) {
        Interval& x = inputs_[v.id()];
        x = {std::min(x.low, static_cast<double>(*it->second.except)),
             std::max(x.high, static_cast<double>(*it->second.except))};
      }
    }
  }

  void find(std::map<std::string, Limit>& limits) {
    const double high = range_of(DType::i32)->high;
    std::string why = fault(-high - 1, high);
    if (why.empty()) return;
    if (std::string always = free_.empty() ? why : fault(0, 0); !always.empty())
      throw invalid(always, "use 32-bit integers, or compute these values outside of the model");
    double top = largest(high, [&](double x) { return fault(0, x).empty(); });
    double bottom = largest(high + 1, [&](double x) { return fault(-x, top).empty(); });
    for (const auto& [column, id] : free_)
      limits[column] = {.low = static_cast<int64_t>(-bottom), .end = static_cast<int64_t>(top) + 1, .why = why};
  }

 private:
  template <class F>
  static double largest(double most, F holds) {
    if (holds(most)) return most;
    double low = 0;  // invariant: holds(low)
    while (most - low > 1) {
      double middle = std::floor((low + most) / 2);
      (holds(middle) ? low : most) = middle;
    }
    return low;
  }

  /// The first exact integer that may leave its range if the unlimited columns are in [low, high]; "" if none.
  std::string fault(double low, double high) {
    for (const auto& [column, id] : free_) inputs_[id] = {low, high};
    std::vector<std::optional<Interval>> at = intervals(g_, inputs_);
    for (const Batch::Exact& e : batch_.exact_integers()) {
      auto bad = [&](ValueId id) {
        return g_.info(id).type.dtype == DType::i32 && at[id] && (at[id]->low < e.low || at[id]->high > e.high);
      };
      bool any = std::ranges::any_of(e.results, [&](Value v) { return bad(v.id()); });
      for (size_t id = e.first; id < e.end && !any; ++id) any = bad(static_cast<ValueId>(id));
      if (any)
        return fmt::format("{} produces integers outside [{:.0f}, {:.0f}], the range in which they are computed",
                           e.what, e.low, e.high);
    }
    return "";
  }

  const Graph& g_;
  const Batch& batch_;
  std::vector<std::pair<std::string, ValueId>> free_;
  std::map<ValueId, Interval> inputs_;
};

}  // namespace

std::map<std::string, Limit> limits_of(const Graph& g, const Batch& batch) {
  std::map<std::string, Limit> limits = batch.limits();
  for (const auto& [column, v] : batch.read()) {
    if (v.dtype() != DType::i32) continue;
    std::optional<Limit> own = index_limit(g, v);
    if (!own) continue;
    auto [it, fresh] = limits.try_emplace(column, *own);
    if (!fresh) it->second = it->second & *own;
  }
  if (!batch.exact_integers().empty()) Widest(g, batch, limits).find(limits);
  return limits;
}

}  // namespace tutti
