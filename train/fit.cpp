#include "train/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "core/base/status.h"
#include "core/base/text.h"

namespace tutti {
namespace {

/// What a run of those options takes; none where the device cannot hold it.
class Peaks {
 public:
  Peaks(const Device& device, const Task& task, const TrainerOptions& options, const data::Source& train,
        const data::Source* test)
      : device_(device), task_(task), options_(options), train_(train), test_(test) {}
  struct Taken {
    uint64_t peak = 0;
    double flops = 0;
  };
  std::optional<Taken> operator()(int64_t recompute, int64_t accumulate) const {
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

 private:
  const Device& device_;
  const Task& task_;
  const TrainerOptions& options_;
  const data::Source& train_;
  const data::Source* test_;
};

}  // namespace

Fit fit(const Device& device, const Task& task, const TrainerOptions& options, const data::Source& train,
        const data::Source* test, uint64_t budget) {
  Peaks peak(device, task, options, train, test);
  auto fits = [&](const std::optional<Peaks::Taken>& t) { return t && t->peak <= budget; };
  TrainerOptions plain = options;
  plain.recompute = 0;
  std::vector<std::string> all = RunPlanner(device, task, plain, train, test).blocks(options.batch);
  std::optional<Peaks::Taken> without = peak(0, options.accumulate), with = without;
  auto count = static_cast<int64_t>(all.size()), good = int64_t{0};
  if (!fits(without)) {
    with = peak(count, options.accumulate);
    if (!fits(with)) {
      std::string least =
          with ? bytes_text(std::min(with->peak, without.value_or(*with).peak)) : "more than the device has";
      for (int64_t parts = 2 * options.accumulate; parts <= options.batch; parts *= 2)
        if (options.batch % parts == 0 && fits(peak(count, parts)))
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
      std::optional<Peaks::Taken> taken = peak(middle, options.accumulate);
      (fits(taken) ? good : bad) = middle;
      if (fits(taken)) with = taken;
    }
  }
  all.resize(static_cast<size_t>(good));
  Fit f{std::move(all), static_cast<size_t>(count), with ? with->peak : 0, without ? without->peak : 0};
  if (with && without && without->flops > 0) f.cost = with->flops / without->flops - 1;
  return f;
}

std::vector<std::string> ways_to_fit(const Device& device, const Task& task, const TrainerOptions& options,
                                     const data::Source& train, const data::Source* test, uint64_t room) {
  Peaks peak(device, task, options, train, test);
  auto fits = [&](const std::optional<Peaks::Taken>& t) { return t && t->peak <= room; };
  std::vector<std::string> ways;
  auto parts_that_fit = [&](int64_t recompute) -> int64_t {
    for (int64_t parts = 2 * options.accumulate; parts <= options.batch; parts *= 2)
      if (options.batch % parts == 0 && fits(peak(recompute, parts))) return parts;
    return 0;
  };
  if (int64_t parts = parts_that_fit(options.recompute)) ways.push_back(fmt::format("--accumulate {}", parts));
  try {
    Fit f = fit(device, task, options, train, test, room);
    if (!f.blocks.empty()) ways.push_back(fmt::format("--recompute {}", f.blocks.size()));
  } catch (const Error& e) {
    if (e.code != Code::no_memory) throw;
    int64_t parts = ways.empty() ? parts_that_fit(std::numeric_limits<int32_t>::max()) : 0;
    if (parts > 0) ways.push_back(fmt::format("--accumulate {} --recompute all", parts));
  }
  return ways;
}

}  // namespace tutti
