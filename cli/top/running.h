// What runs of this user say of themselves while they go on, for `tutti top`.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tutti::cli {

/// A note of this process in a folder of the user's ($XDG_RUNTIME_DIR/tutti, else tutti-UID among the temporary files),
/// locked while the process lives. Where none can be written the run goes on without.
class RunningNote {
 public:
  RunningNote() = default;
  RunningNote(const RunningNote&) = delete;
  RunningNote& operator=(const RunningNote&) = delete;
  ~RunningNote();
  /// Says that now; writes at most twice a second, but the first time always.
  void say(const nlohmann::json& what);

 private:
  std::string path_;
  int fd_ = -1;
  bool asked_ = false;  // for the folder
  std::chrono::steady_clock::time_point written_ = {};
};

/// A run that goes on.
struct Running {
  pid_t pid = 0;
  nlohmann::json says;
};

/// In the order of their numbers. Notes of processes that ended are removed.
std::vector<Running> running();

}  // namespace tutti::cli
