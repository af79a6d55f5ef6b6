// Logs scalars of a run by step, for TensorBoard and as CSV tables.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/export.h"
#include "data/files/event_file.h"

namespace tutti {

/// A log folder: an event file for TensorBoard, `steps.csv` (one line per step), `epochs.csv` (one per evaluation) and
/// `norms.csv` (one each time norms are read). Lines are appended immediately, and a resumed run continues the files
/// with their columns. If writing fails, for example because the disk is full, logging ends but the run continues: see
/// `failure`.
class TUTTI_API RunLog {
 public:
  /// Creates the folder if missing. Throws Error(invalid) that names a path that cannot be created or written. `norms`:
  /// whether norms() will be called.
  explicit RunLog(const std::string& folder, bool norms = false);
  ~RunLog();
  /// One line of steps.csv; the same names for every step of a log.
  void step(int64_t step, const Scalars& scalars);
  /// One line of epochs.csv; the same names for every epoch.
  void epoch(int64_t step, const Scalars& scalars);
  /// One line of norms.csv; names such as "grad_norm/0.weight" are TensorBoard's tags.
  void norms(int64_t step, const Scalars& scalars);
  /// Notices since the last call about existing files with other columns; usually "".
  std::string take_notice() { return std::exchange(notice_, {}); }
  /// Why logging ended; "" while it goes on.
  const std::string& failure() const { return failure_; }

 private:
  struct Table;
  /// `card`: the tag prefix by which TensorBoard groups curves.
  void add(Table& table, const std::string& card, int64_t step, const Scalars& scalars);
  double now() const;
  std::unique_ptr<EventFile> events_;
  std::unique_ptr<Table> steps_, epochs_, norms_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::string failure_, notice_;
};

}  // namespace tutti
