// What a run looks like while it goes on and afterwards: scalars by step for TensorBoard and for tables.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/export.h"
#include "data/files/event_file.h"

namespace tutti {

/// A folder of a run's curves: an event file that TensorBoard opens, `steps.csv` (one line per step), `epochs.csv` (one
/// per evaluation) and `norms.csv` (one each time norms are looked at). Lines are appended as they come, so a run that
/// goes on from a checkpoint continues the files of its folder, with the columns that they have. Where writing fails,
/// say because the disk is full, logging ends and the run goes on: see `failure`.
class TUTTI_API RunLog {
 public:
  /// Makes the folder where there is none. Throws Error(invalid) naming what cannot be made or written. `norms`:
  /// whether norms() will be called.
  explicit RunLog(const std::string& folder, bool norms = false);
  ~RunLog();
  /// One line of steps.csv; the same names for every step of a log.
  void step(int64_t step, const Scalars& scalars);
  /// One line of epochs.csv; the same names for every epoch.
  void epoch(int64_t step, const Scalars& scalars);
  /// One line of norms.csv; names such as "grad_norm/0.weight" are TensorBoard's tags.
  void norms(int64_t step, const Scalars& scalars);
  /// What there is to say of files that were there with other columns, since the last call; "" as a rule.
  std::string take_notice() { return std::exchange(notice_, {}); }
  /// Why logging ended; "" while it goes on.
  const std::string& failure() const { return failure_; }

 private:
  struct Table;
  /// `card`: what TensorBoard groups the curves by.
  void add(Table& table, const std::string& card, int64_t step, const Scalars& scalars);
  double now() const;
  std::unique_ptr<EventFile> events_;
  std::unique_ptr<Table> steps_, epochs_, norms_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::string failure_, notice_;
};

}  // namespace tutti
