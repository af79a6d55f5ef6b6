// How many samples of a batch each rank computes: equally many, or more on faster devices (option shares).
#pragma once
#include <map>
#include <string>
#include <vector>

#include "data/source.h"
#include "train/run/device_model.h"
#include "train/run/plan.h"
#include "train/run/trainer.h"

namespace tutti {

/// This rank's samples of every batch.
struct Share {
  int64_t first = 0, count = 0;
};
Share share_of(const TrainerOptions& options);

/// The parts of this rank's batches in `samples` of a set, of which each step takes `batch` over all ranks, or of this
/// rank's own.
BatchParts own_parts(const TrainerOptions& options, int64_t samples, int64_t batch);

/// Throws Error(invalid) for an unknown text, for numbers that do not fit batch and ranks, and for options with which
/// shares may not differ.
void check_shares(const TrainerOptions& options);
/// "48,16".
std::string to_text(const std::vector<int64_t>& shares);

/// The batch divided in proportion to the ranks' speed, each a multiple of `unit` and at least that.
TUTTI_API std::vector<int64_t> shares_by_speed(int64_t batch, int64_t unit, const std::vector<double>& seconds);

/// Those that the option names; else those of the checkpoint's run, if they fit this one; else, by speed, every rank
/// measures a few steps of an equal share, all at the same time, and they divide the batch by what all have measured.
/// Empty: equal.
std::vector<int64_t> agreed_shares(const DeviceModel& model, const TrainerOptions& options, const data::Source& set,
                                   const std::map<std::string, std::string>& loaded);

}  // namespace tutti
