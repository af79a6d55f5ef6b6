#include "train/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "core/base/status.h"
#include "core/base/text.h"

namespace tutti {
namespace {

/// Plans of one run with more or less recompute and accumulation, held against a number of bytes.
class Plans {
 public:
  Plans(const Device& device, const Task& task, const TrainerOptions& options, const data::Source& train,
        const data::Source* test, uint64_t room)
      : device_(device), task_(task), options_(options), train_(train), test_(test), room_(room) {}
  struct Taken {
    uint64_t peak = 0;
    double flops = 0;
  };
  /// None where the device cannot hold it.
  std::optional<Taken> taken(int64_t recompute, int64_t accumulate) const {
    TrainerOptions o = options_;
    o.recompute = recompute;
    o.accumulate = accumulate;
    try {
      MemoryPlan plan = RunPlanner(device_, task_, o, train_, test_).plan(o.batch);
      return Taken{plan.peak, plan.flops};
    } catch (const Error& e) {
      if (e.code != Code::no_memory) throw;
      return {};
    }
  }
  bool fits(const std::optional<Taken>& t) const { return t && t->peak <= room_; }
  /// The fewest parts, more than now, that would do; 0: none.
  int64_t fewest_parts(int64_t recompute) const {
    std::vector<int64_t> possible;
    for (int64_t parts = 2 * options_.accumulate; parts <= options_.batch; parts += options_.accumulate)
      if (options_.batch % parts == 0) possible.push_back(parts);
    auto it = std::ranges::partition_point(possible, [&](int64_t parts) { return !fits(taken(recompute, parts)); });
    return it == possible.end() ? 0 : *it;
  }

 private:
  const Device& device_;
  const Task& task_;
  const TrainerOptions& options_;
  const data::Source& train_;
  const data::Source* test_;
  uint64_t room_;
};

}  // namespace

Fit fit(const Device& device, const Task& task, const TrainerOptions& options, const data::Source& train,
        const data::Source* test, uint64_t budget) {
  Plans plans(device, task, options, train, test, budget);
  TrainerOptions plain = options;
  plain.recompute = 0;
  std::vector<std::string> all = RunPlanner(device, task, plain, train, test).blocks(options.batch);
  std::optional<Plans::Taken> without = plans.taken(0, options.accumulate), with = without;
  auto count = static_cast<int64_t>(all.size()), good = int64_t{0};
  if (!plans.fits(without)) {
    with = plans.taken(count, options.accumulate);
    if (!plans.fits(with)) {
      std::string least =
          with ? bytes_text(std::min(with->peak, without.value_or(*with).peak)) : "more than the device has";
      if (int64_t parts = plans.fewest_parts(count))
        throw Error(Code::no_memory,
                    fmt::format("a batch of {} does not fit into {}: it takes {}, with all {} blocks recomputed",
                                options.batch, bytes_text(budget), least, count),
                    fmt::format("compute it in parts: --accumulate {}", parts));
      throw Error(Code::no_memory,
                  fmt::format("the run does not fit into {}: a batch of {} takes {}, with all {} blocks recomputed",
                              bytes_text(budget), options.batch, least, count),
                  "choose a smaller batch, model or precision");
    }
    good = count;
    for (int64_t bad = 0; good - bad > 1;) {
      int64_t middle = bad + (good - bad) / 2;
      std::optional<Plans::Taken> taken = plans.taken(middle, options.accumulate);
      (plans.fits(taken) ? good : bad) = middle;
      if (plans.fits(taken)) with = taken;
    }
  }
  all.resize(static_cast<size_t>(good));
  Fit f{std::move(all), static_cast<size_t>(count), with ? with->peak : 0, without ? without->peak : 0};
  if (with && without && without->flops > 0) f.cost = with->flops / without->flops - 1;
  return f;
}

std::vector<std::string> ways_to_fit(const Device& device, const Task& task, const TrainerOptions& options,
                                     const data::Source& train, const data::Source* test, uint64_t room) {
  Plans plans(device, task, options, train, test, room);
  std::vector<std::string> ways;
  if (int64_t parts = plans.fewest_parts(options.recompute)) ways.push_back(fmt::format("--accumulate {}", parts));
  try {
    Fit f = fit(device, task, options, train, test, room);
    if (!f.blocks.empty()) ways.push_back(fmt::format("--recompute {}", f.blocks.size()));
  } catch (const Error& e) {
    if (e.code != Code::no_memory) throw;
    int64_t parts = ways.empty() ? plans.fewest_parts(std::numeric_limits<int32_t>::max()) : 0;
    if (parts > 0) ways.push_back(fmt::format("--accumulate {} --recompute all", parts));
  }
  return ways;
}

}  // namespace tutti
