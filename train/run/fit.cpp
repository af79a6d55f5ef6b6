#include "train/run/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/base/text.h"

namespace tutti {
namespace {

constexpr size_t few = 8;  // up to this many choices are searched linearly
constexpr uint64_t never = std::numeric_limits<uint64_t>::max();

/// Caches the plans of one run for different recompute and accumulation and compares their peaks with a budget.
class Plans {
 public:
  Plans(const Device& device, const Task& task, const TrainerOptions& options, const data::Source& train,
        const data::Source* test, uint64_t room)
      : device_(device), task_(task), options_(options), train_(train), test_(test), room_(room) {}
  struct Taken {
    uint64_t peak = never;  ///< `never` if the device cannot hold it
    double flops = 0;
  };
  struct Choice {
    int64_t recompute = 0, accumulate = 1;
    Taken taken = {};
  };
  Choice choice(int64_t recompute, int64_t accumulate) {
    auto [it, added] = known_.try_emplace({accumulate, recompute});
    if (added) it->second = plan(recompute, accumulate);
    return {recompute, accumulate, it->second};
  }
  bool fits(const Choice& c) const { return c.taken.peak <= room_; }
  /// Recomputes the first 0 to `count` blocks: the smallest number that fits, else the one with the lowest peak.
  Choice blocks(int64_t count, int64_t accumulate) {
    std::vector<int64_t> numbers(static_cast<size_t>(count) + 1);
    std::iota(numbers.begin(), numbers.end(), int64_t{0});
    return search(numbers, [&](int64_t n) { return choice(n, accumulate); });
  }
  /// Accumulates in more parts than now: the smallest number that fits with one of these numbers of recomputed blocks,
  /// else the one with the lowest peak. None if the batch cannot be split further.
  std::optional<Choice> parts(const std::vector<int64_t>& recompute) {
    std::vector<int64_t> possible;
    for (int64_t n = 2 * options_.accumulate; n <= options_.batch; n += options_.accumulate)
      if (options_.batch % (n * ranks_of(options_)) == 0) possible.push_back(n);
    if (possible.empty()) return {};
    return search(possible, [&](int64_t n) {
      Choice best = choice(recompute[0], n);
      for (int64_t r : recompute) best = fits(best) ? best : std::min(best, choice(r, n), lower);
      return best;
    });
  }
  static bool lower(const Choice& a, const Choice& b) { return a.taken.peak < b.taken.peak; }
  /// All blocks that a step can recompute.
  std::vector<std::string> blocks_of_step() { return planner(0, options_.accumulate).blocks(options_.batch); }

 private:
  /// A planner for plain steps and one for accumulated steps; each opens a session on the device.
  RunPlanner& planner(int64_t recompute, int64_t accumulate) {
    std::unique_ptr<RunPlanner>& kept = planners_[accumulate > 1];
    if (!kept) {
      TrainerOptions o = options_;
      o.accumulate = accumulate;
      kept = std::make_unique<RunPlanner>(device_, task_, o, train_, test_);
    }
    kept->change(recompute, accumulate);
    return *kept;
  }
  Taken plan(int64_t recompute, int64_t accumulate) {
    try {
      MemoryPlan plan = planner(recompute, accumulate).plan(options_.batch);
      return {plan.peak, plan.flops};
    } catch (const Error& e) {
      if (e.code != Code::no_memory) throw;
      return {};
    }
  }
  /// The first choice that fits, else the one with the lowest peak. Peaks need not fall monotonically: short lists are
  /// searched linearly; for long ones the peak is assumed to fall to one minimum and to rise after it.
  template <class Get>
  Choice search(const std::vector<int64_t>& all, Get get) {
    if (all.size() <= few) {
      Choice lowest = get(all[0]);
      for (size_t i = 1; i < all.size() && !fits(lowest); ++i) lowest = std::min(lowest, get(all[i]), lower);
      return lowest;
    }
    size_t low = 0, high = all.size() - 1;
    if (!fits(get(all[high]))) {
      while (low < high && !fits(get(all[high]))) {
        size_t middle = low + (high - low) / 2;
        if (Choice c = get(all[middle]); fits(c) || (c.taken.peak != never && !lower(get(all[middle + 1]), c)))
          high = middle;
        else
          low = middle + 1;
      }
      if (!fits(get(all[high]))) return get(all[high]);
    }
    auto it = std::partition_point(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(high),
                                   [&](int64_t n) { return !fits(get(n)); });
    return get(*it);
  }

  const Device& device_;
  const Task& task_;
  const TrainerOptions& options_;
  const data::Source& train_;
  const data::Source* test_;
  uint64_t room_;
  std::unique_ptr<RunPlanner> planners_[2];             // index: whether steps are accumulated
  std::map<std::pair<int64_t, int64_t>, Taken> known_;  // key: parts, recomputed blocks
};

/// ", with 2 of 3 blocks recomputed"; "" if none are.
std::string with_blocks(int64_t blocks, int64_t count) {
  if (blocks == 0) return "";
  return blocks == count ? fmt::format(", with all {} blocks recomputed", count)
                         : fmt::format(", with {} of {} blocks recomputed", blocks, count);
}

/// Throws the error that names what does not fit and what would.
[[noreturn]] void refuse(Plans& plans, const Plans::Choice& lowest, const TrainerOptions& options, int64_t count,
                         uint64_t budget) {
  auto text = [&](uint64_t peak) {
    if (peak == never) return std::string("more than the device has");
    return bytes_text(peak) == bytes_text(budget) ? fmt::format("{} B", peak) : bytes_text(peak);
  };
  auto room = [&](uint64_t peak) {
    return text(peak).ends_with(" B") ? fmt::format("{} B", budget) : bytes_text(budget);
  };
  std::optional<Plans::Choice> parts = plans.parts({lowest.recompute, count});
  if (parts && !plans.fits(*parts)) parts = plans.blocks(count, parts->accumulate);
  uint64_t peak = lowest.taken.peak;
  if (parts && plans.fits(*parts))
    throw Error(Code::no_memory,
                fmt::format("a batch of {} does not fit into {}: it needs {}{}", options.batch, room(peak), text(peak),
                            with_blocks(lowest.recompute, count)),
                "split each batch into parts: " + option_text("accumulate", parts->accumulate));
  Plans::Choice least = parts ? std::min(lowest, *parts, Plans::lower) : lowest;
  peak = least.taken.peak;
  std::string in_parts = least.accumulate > 1 ? fmt::format(" in {} parts", least.accumulate) : "";
  std::string accumulate =
      least.accumulate > options.accumulate ? option_text("accumulate", least.accumulate) + " " : "";
  throw Error(
      Code::no_memory,
      fmt::format("the training run does not fit into {}: its smallest configuration, a batch of {}{}, needs {}{}",
                  room(peak), options.batch, in_parts, text(peak), with_blocks(least.recompute, count)),
      peak == never ? "choose a smaller batch, model or precision"
                    : fmt::format("{}{}, or choose a smaller batch, model or precision", accumulate,
                                  option_text("memory-budget", fmt::format("{}B", peak))));
}

}  // namespace

Fit fit(const Device& device, const Task& task, const TrainerOptions& options, const data::Source& train,
        const data::Source* test, uint64_t budget) {
  Plans plans(device, task, options, train, test, budget);
  std::vector<std::string> all = plans.blocks_of_step();
  const auto count = static_cast<int64_t>(all.size());
  Plans::Choice without = plans.choice(0, options.accumulate);
  Plans::Choice with = plans.fits(without) ? without : plans.blocks(count, options.accumulate);
  if (!plans.fits(with)) refuse(plans, with, options, count, budget);
  all.resize(static_cast<size_t>(with.recompute));
  bool known = without.taken.peak != never;
  Fit f{std::move(all), static_cast<size_t>(count), with.taken.peak, known ? without.taken.peak : 0};
  if (known && without.taken.flops > 0) f.cost = with.taken.flops / without.taken.flops - 1;
  return f;
}

std::vector<std::string> ways_to_fit(const Device& device, const Task& task, const TrainerOptions& options,
                                     const data::Source& train, const data::Source* test, uint64_t room) {
  Plans plans(device, task, options, train, test, room);
  const auto count = static_cast<int64_t>(plans.blocks_of_step().size());
  std::vector<std::string> ways;
  if (auto parts = plans.parts({options.recompute}); parts && plans.fits(*parts))
    ways.push_back(option_text("accumulate", parts->accumulate));
  Plans::Choice lowest = plans.blocks(count, options.accumulate);
  if (plans.fits(lowest)) {
    if (lowest.recompute > 0) ways.push_back(option_text("recompute", lowest.recompute));
  } else if (auto parts = plans.parts({lowest.recompute, count}); ways.empty() && parts && plans.fits(*parts)) {
    ways.push_back(
        fmt::format("{} {}", option_text("accumulate", parts->accumulate),
                    option_text("recompute", parts->recompute == count ? "all" : std::to_string(parts->recompute))));
  }
  return ways;
}

}  // namespace tutti
