// Passes over a data set.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/cpus.h"
#include "core/base/option_text.h"
#include "data/batch_loader.h"
#include "train/run/run.h"

namespace tutti {

int64_t SetPasses::begin() {
  trainer_.steps_left(set_, 0);  // updates the position
  return trainer_.position().epoch + 1;
}

TrainResult SetPasses::train(int64_t max_steps, const Trainer::Watch& watch) {
  return trainer_.train(set_, max_steps, watch);
}

bool SetPasses::ended() const { return trainer_.position().sample == 0; }
int64_t SetPasses::steps() const { return trainer_.steps_per_epoch(set_); }

std::string SetPasses::advice(const std::string& data) const {
  const TrainerOptions& o = trainer_.options();
  const bool augments = !o.augment.empty() && o.augment != "none";
  const int cores = usable_cpus(), workers = o.workers >= 0 ? o.workers : data::usual_workers(set_, augments);
  const std::string pack = fmt::format("tutti data {} --output FILE.npz", data);
  if (!set_.parallel()) return "this data is read by one thread; pack it: " + pack;
  if (workers < cores)
    return fmt::format("read it with more threads: {} (now {})", option_text("workers", cores), workers);
  return fmt::format(
      "all cores are already used for reading; read further ahead ({}), or pack the data so that it needs no decoding: "
      "{}",
      option_text("prefetch", 4 * std::max(workers, 1)), pack);
}

}  // namespace tutti
