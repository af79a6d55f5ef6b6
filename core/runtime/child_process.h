// Child processes: pipes, line-by-line output, termination.
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
/// The time point that many seconds from now.
Deadline deadline_in(double seconds);

/// Waits until any of them is readable or closed; returns false at the deadline. Throws Error(internal).
bool wait_readable(pollfd* of, size_t count, Deadline end);

/// A pipe that child programs do not inherit (close-on-exec).
struct Pipe {
  /// Throws Error(internal) if the system cannot create one.
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
  int signal = 0;      ///< the signal that ended it, or 0
  /// "exit code 2", "signal 11 (SIGSEGV: Segmentation fault)".
  std::string text() const;
};

/// A child process. The destructor kills it and waits for it; one that was forked by this class is also killed when the
/// thread that created it ends.
class ChildProcess {
 public:
  ChildProcess() = default;
  /// Takes over a child of this process.
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  /// Runs `body` in a fork of this process; if it returns or throws, the exit code is 127. If this process has several
  /// threads or has opened a driver, the body may only call async-signal-safe functions and exec. Throws
  /// Error(internal).
  explicit ChildProcess(const std::function<void()>& body);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Sends the signal to the process and, if it leads a process group, to the group.
  void kill(int signal) const;
  /// Waits for its end, then kills the rest of the process group that it leads.
  Ending wait();
  /// Whether the process ends before the deadline.
  bool ends_by(Deadline end) const;
  pid_t id() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

/// Reads what a process writes, line by line.
class LineReader {
 public:
  enum Result { line, closed, silent };
  /// `silent`: no complete line by the deadline; `closed`: end of file.
  Result next(int from, std::string& text, Deadline end);

 private:
  std::string pending_;
};

/// This process's environment with `name` set to `value`.
std::vector<std::string> environment_with(const std::string& name, const std::string& value);

/// For exec: pointers into `words`, then a null pointer.
std::vector<char*> pointers_to(std::vector<std::string>& words);

}  // namespace tutti
