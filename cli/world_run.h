// How `tutti train` takes part in a world of several processes (docs/DISTRIBUTED.md).
#pragma once
#include <memory>

#include "cli/command.h"
#include "core/world/agree.h"
#include "core/world/world.h"
#include "data/source.h"
#include "train/run/trainer.h"

namespace tutti::cli {

class WorldRun {
 public:
  /// Declares --world-timeout.
  void add_to(CLI::App& sub);
  /// Where a launcher started several processes: meets them, gives this one CPUs of its own, and on ranks other than 0
  /// keeps stderr silent. Throws Error(invalid) for --world-timeout where there is one process.
  void open();
  /// Null where this process is alone.
  const std::shared_ptr<World>& world() const { return world_; }
  bool alone() const { return !world_; }
  /// Whether this process prints and writes.
  bool writes() const { return alone() || world_->rank() == 0; }
  int ranks() const { return alone() ? 1 : world_->size(); }
  /// This rank's of --device, which may be a list of one per rank. Throws Error(invalid) for one of another length.
  std::string device(const std::string& list) const;
  /// Throws Error(invalid) listing what differs between ranks; `data`: of the training. Devices may differ, and if they
  /// do, or with exact numerics, the number of CPUs too.
  void agree(Settings settings, const data::Source& data, const TrainerOptions& options, const Trainer& trainer);
  void agree(const Settings& settings);
  /// ", one of 4 ranks": for the line that names the device; "" for one process.
  std::string text(const Trainer& trainer) const;
  /// What --json says of it; all ranks must call it.
  nlohmann::ordered_json document(const TrainerOptions& options, Trainer& trainer) const;

 private:
  std::shared_ptr<World> world_;
  double timeout_ = WorldOptions().timeout;
  CLI::Option* option_ = nullptr;
  int cpus_ = 0;
  std::vector<std::string> devices_;  // ids, by rank
};

/// This command line is that of a command whose processes form a world.
void expect_world();
/// Throws Error(invalid) if a launcher started several processes, each of which would do all that the command does.
void expect_one_process(const std::string& command);
/// Before an error is printed: returns where this rank is to print it. Else hands it to the rank that prints, and ends.
void hand_over(const std::string& message, const std::string& remedy, int exit_code);
/// Behind all that the process does; the exit code. After an error it ends the other ranks too.
int leave_world(int exit_code);

}  // namespace tutti::cli
