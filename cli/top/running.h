// Status of this user's active runs, for `tutti top`.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tutti::cli {

/// A status file of this process in a folder of the user (os::runtime_folder), locked while the process lives. If it
/// cannot be written, the run continues without it.
class RunningNote {
 public:
  RunningNote() = default;
  RunningNote(const RunningNote&) = delete;
  RunningNote& operator=(const RunningNote&) = delete;
  ~RunningNote();
  /// Updates the status; writes at most twice a second, the first time always.
  void say(const nlohmann::json& what);

 private:
  std::string path_;
  int fd_ = -1;
  bool asked_ = false;  // whether the folder was looked up
  std::chrono::steady_clock::time_point written_ = {};
};

/// An active run.
struct Running {
  int64_t pid = 0;
  nlohmann::json says;
};

/// Active runs, ordered by process id. Removes the status files of processes that ended.
std::vector<Running> running();

}  // namespace tutti::cli
