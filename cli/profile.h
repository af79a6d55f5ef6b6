// --profile of tutti train: kernel times of some steps, as a Chrome trace and as a table.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "cli/command.h"
#include "cli/output_file.h"
#include "core/runtime/device.h"
#include "train/run/profile.h"
#include "train/step/precision.h"

namespace tutti::cli {

/// A node of the training step, with the nodes fused into its kernels.
struct ProfileRow {
  double seconds = 0, of_step = 0;  ///< time per step, and its fraction
  std::optional<double> of_peak;    ///< roofline time of the device divided by `seconds`
  std::string node, kernel;         ///< "conv2d + 1 features.3"
};

class Profile {
 public:
  /// Declares --profile and --profile-step.
  void add_to(CLI::App& sub);
  /// Throws Error(invalid) for conflicting options and for an invalid output file.
  void check() const;
  const std::string& target() const { return file_; }
  /// For TrainerOptions::profiler; null without --profile.
  std::shared_ptr<Profiler> make();
  /// Starts profiling a run of `steps` steps. Throws Error(invalid) if the step of --profile-step is not among them.
  void start(int64_t steps);
  /// Measures the devices' peaks (`threads`: of CPU devices, 0: all) and writes the file. Prints the ten costliest
  /// nodes to stderr unless `quiet`, and an error there if the file cannot be written. Does nothing without --profile.
  void finish(Precision precision, int threads, bool quiet);
  /// After finish: adds "profile" to a run's document; null if no file was written.
  void tell(nlohmann::ordered_json& document) const;
  /// After finish: false if the file could not be written.
  bool written() const { return !failed_; }
  /// After finish: nodes, costliest first.
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
