// --profile of tutti train: what the kernels of some steps took, as a Chrome trace and as a table.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "cli/command.h"
#include "cli/output_file.h"
#include "core/runtime/device.h"
#include "train/precision.h"
#include "train/profile.h"

namespace tutti::cli {

/// A node of the training step, with those that its kernels take along.
struct ProfileRow {
  double seconds = 0, of_step = 0;  ///< of a step, and its share
  std::optional<double> of_peak;    ///< the least possible time by the device's peaks over `seconds`
  std::string node, kernel;         ///< "conv2d + 1 features.3"
};

class Profile {
 public:
  /// Declares --profile and --profile-step.
  void add_to(CLI::App& sub);
  /// Throws Error(invalid) for options that do not fit each other, and for a file that is none.
  void check() const;
  const std::string& target() const { return file_; }
  /// For TrainerOptions::profiler; null where nothing was asked for.
  std::shared_ptr<Profiler> make();
  /// `steps` will be trained. Throws Error(invalid) where the one asked for is not among them.
  void start(int64_t steps);
  /// Measures what the devices reach at best (`threads`: of CPU devices, 0: all), writes the file, and the ten
  /// costliest nodes to stderr unless `quiet`; a file that cannot be written is told there. Nothing where nothing was
  /// asked for.
  void finish(Precision precision, int threads, bool quiet);
  /// After finish: adds "profile" to a run's document, null where none was written.
  void tell(nlohmann::ordered_json& document) const;
  /// After finish: no file that was asked for is missing for want of a disk.
  bool written() const { return !failed_; }
  /// After finish: the costliest first.
  const std::vector<ProfileRow>& rows() const { return rows_; }

 private:
  std::string file_;
  std::optional<int64_t> step_;
  std::shared_ptr<Profiler> profiler_;
  nlohmann::ordered_json summary_;
  std::vector<ProfileRow> rows_;
  bool failed_ = false;
};

}  // namespace tutti::cli
