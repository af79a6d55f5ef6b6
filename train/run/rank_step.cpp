#include "train/run/rank_step.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "data/loader.h"
#include "train/run/device_model.h"
#include "train/run/feeds.h"
#include "train/run/gradient_buckets.h"
#include "train/run/plan.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

double median(std::vector<double> x) {
  std::ranges::nth_element(x, x.begin() + std::ssize(x) / 2);
  return x[x.size() / 2];
}

/// Runs the programs of a rank's step.
class RankRun {
 public:
  RankRun(const Device& device, const Task& task, const TrainerOptions& options, const data::Source& set, int64_t steps)
      : options_(options), model_(device, task, options_), share_(options.batch / options.planned_ranks) {
    model_.bind(set);
    update_ = model_.update();
    part_ = model_.program(DeviceModel::Kind::training, set, share_ / options.accumulate);
    GradientBuckets layout(*model_.declared(), options.precision);
    for (const GradientBucket& b : layout.buckets)
      step_.buckets.push_back({b.elements * size_of(master_dtype(options.precision)), 0});
    part_->step->watch(layout.early(), [&, layout](size_t k, const std::byte*) {
      const size_t bucket = layout.states[k].bucket;
      if (last_part_) ready_[bucket] = since(begun_);
    });
    ready_.resize(step_.buckets.size());
    times_.resize(step_.buckets.size());
    measure(set, steps);
  }
  RankStep result() const { return step_; }

 private:
  void measure(const data::Source& set, int64_t steps) {
    data::Batches batches(data::shuffled_order(set.size(), options_.seed, 0), share_, data::Last::drop);
    steps = std::min(steps, batches.size());
    data::BatchLoader loader(set, batches, 0, steps, model_.load_options(*part_, false));
    std::vector<double> parts, updates;
    for (int64_t k = 0; k < steps; ++k) {
      const data::Batch& batch = loader.next();
      ready_.assign(ready_.size(), 0);
      begun_ = Clock::now();
      run_parts(loader, batch);
      parts.push_back(since(begun_));
      for (size_t b = 0; b < ready_.size(); ++b) times_[b].push_back(ready_[b] > 0 ? ready_[b] : parts.back());
      begun_ = Clock::now();
      model_.runner.wait(update_->run([&](const std::string&, void* to) { std::memset(to, 0, bytes_of_rate()); }));
      updates.push_back(since(begun_));
    }
    // the first step is slower
    step_.parts = median(std::move(parts));
    step_.update = median(std::move(updates));
    for (size_t b = 0; b < times_.size(); ++b) step_.buckets[b].ready = std::min(median(times_[b]), step_.parts);
  }

  size_t bytes_of_rate() const { return size_of(master_dtype(options_.precision)); }

  void run_parts(data::BatchLoader& loader, const data::Batch& batch) {
    const int64_t size = share_ / options_.accumulate;
    uint64_t ticket = 0;
    for (int32_t draw = 0; draw < options_.accumulate; ++draw) {
      last_part_ = draw + 1 == options_.accumulate;
      Samples samples{static_cast<size_t>(draw * size), static_cast<size_t>(size)};
      ticket = part_->step->run([&](const std::string& feed, void* to) {
        if (feed == "draw")
          std::memcpy(to, &draw, sizeof draw);
        else
          fill_batch(loader, batch, samples, feed, to);
      });
    }
    model_.runner.wait(ticket);
  }

  TrainerOptions options_;
  DeviceModel model_;
  int64_t share_;
  CompiledGraph* update_ = nullptr;
  std::shared_ptr<DeviceModel::Program> part_;
  RankStep step_;
  std::vector<double> ready_;               // per bucket, in this step; 0: not reported
  std::vector<std::vector<double>> times_;  // per bucket and step
  Clock::time_point begun_;
  bool last_part_ = false;
};

}  // namespace

RankStep measure_rank_step(const Device& device, const Task& task, const TrainerOptions& options,
                           const data::Source& set, int64_t steps) {
  return RankRun(device, task, options, set, steps).result();
}

}  // namespace tutti
