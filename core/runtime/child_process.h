// Processes of our own making: their pipes, their lines, their end.
#pragma once
#include <sys/types.h>

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

struct pollfd;

namespace tutti {

using Deadline = std::chrono::steady_clock::time_point;
/// So many seconds from now.
Deadline deadline_in(double seconds);

/// Waits until one of them can be read or was closed; false when the time is over. Throws Error(internal).
bool wait_readable(pollfd* of, size_t count, Deadline end);

/// A pipe whose ends programs that are started do not inherit.
struct Pipe {
  /// Throws Error(internal) where the system has none left.
  Pipe();
  ~Pipe();
  Pipe(const Pipe&) = delete;
  /// Closes end 0 (for reading) or 1 (for writing).
  void close_end(size_t k);
  std::array<int, 2> ends = {-1, -1};
};

/// How a process ended.
struct Ending {
  int exit_code = -1;  ///< -1: it did not exit by itself
  int signal = 0;      ///< that ended it
  /// "exit code 2", "signal 11 (SIGSEGV: Segmentation fault)".
  std::string text() const;
};

/// A process that is killed and waited for when this goes out of scope and, where it was forked here, killed when the
/// thread that made it ends.
class ChildProcess {
 public:
  ChildProcess() = default;
  /// Takes over a child of this process.
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  /// Runs `body` in a copy of this process; where it returns or throws, the exit code is 127. Where this process has
  /// several threads or has opened a driver, the body may only call what is safe in a signal handler, and exec. Throws
  /// Error(internal).
  explicit ChildProcess(const std::function<void()>& body);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Sends the signal to it and to its group, where it leads one.
  void kill(int signal) const;
  /// Waits for its end, then kills what is left of the group that it leads.
  Ending wait();
  /// Whether it ends by then.
  bool ends_by(Deadline end) const;
  pid_t id() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

/// What a process writes, line by line.
class LineReader {
 public:
  enum Result { line, closed, silent };
  /// `silent` when no line is whole at the deadline, `closed` when nothing more will come.
  Result next(int from, std::string& text, Deadline end);

 private:
  std::string pending_;
};

/// This process's environment, where `name` has that value.
std::vector<std::string> environment_with(const std::string& name, const std::string& value);

/// For exec: pointers into `words`, then a null.
std::vector<char*> pointers_to(std::vector<std::string>& words);

}  // namespace tutti
