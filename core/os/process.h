// Child processes: start, pipes, line-by-line output, termination.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tutti::os {

using Deadline = std::chrono::steady_clock::time_point;
/// The time point that many seconds from now.
Deadline deadline_in(double seconds);

/// Waits until a pipe can be read or is closed; says for each whether it is. All false: the deadline has passed.
/// Entries of -1 are ignored. Throws std::system_error.
std::vector<bool> wait_readable(const std::vector<int>& pipes, Deadline end);

/// A pipe that child programs do not inherit, unless it is one of their standard streams.
struct Pipe {
  /// Throws std::system_error.
  Pipe();
  ~Pipe();
  Pipe(const Pipe&) = delete;
  /// Closes end 0 (for reading) or 1 (for writing).
  void close_end(size_t k);
  std::array<int, 2> ends = {-1, -1};
};

/// Both directions to a child process, its standard input and output. Writing to a child that has ended is an error,
/// not a signal.
class Conversation {
 public:
  /// Throws std::system_error.
  Conversation();
  ~Conversation();
  Conversation(const Conversation&) = delete;
  /// What the child gets as standard input and output; the parent closes both after the start.
  int child_in() const { return ends_[0]; }
  int child_out() const { return ends_[1]; }
  void close_child_ends();
  /// To read from.
  int from() const { return ends_[2]; }
  /// Whether all of it was sent.
  bool send(const std::string& text) const;
  void close();

 private:
  std::array<int, 4> ends_ = {-1, -1, -1, -1};  // of the child: in, out; of this process: from, to
};

/// How a process ended.
struct Ending {
  int exit_code = -1;  ///< -1: it did not exit by itself
  int signal = 0;      ///< the signal (Windows: the exception) that ended it, or 0
  /// "exit code 2", "signal 11 (SIGSEGV: Segmentation fault)", "exception 0xc0000005".
  std::string text() const;
};

constexpr int inherited = -1;  ///< a standard stream: the one of this process
constexpr int nothing = -2;    ///< a standard stream: empty, or discarded

/// A program to start.
struct Program {
  std::string file;                                    ///< a path, or a name that PATH is searched for
  std::vector<std::string> words;                      ///< its arguments, the first is its name
  std::vector<std::string> environment;                ///< "NAME=value"; none: this process's environment
  int in = nothing, out = inherited, err = inherited;  ///< descriptors, `inherited` or `nothing`
  bool group = false;        ///< a process group of its own, which is killed with it; it gets no Ctrl-C of the terminal
  bool ends_with_us = true;  ///< killed when the thread that started it ends. False: starts faster from large processes
};

/// A child process. The destructor kills it and waits for it.
class ChildProcess {
 public:
  ChildProcess() = default;
  /// Throws std::system_error.
  explicit ChildProcess(const Program& program);
  /// Runs `body` in a fork of this process, killed when the thread that started it ends; if it returns or throws, the
  /// exit code is 127. If this process has several threads or has opened a driver, the body may only call
  /// async-signal-safe functions. Throws std::system_error, on Windows always: see can_fork.
  explicit ChildProcess(const std::function<void()>& body);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Ends the process and its group by force.
  void kill() const;
  /// Asks the process to end, as `kill PID` (Windows: Ctrl-Break) does.
  void ask_to_end() const;
  /// Waits for its end, then kills the rest of the process group that it leads.
  Ending wait();
  /// Whether the process ends before the deadline.
  bool ends_by(Deadline end) const;
  int64_t id() const { return id_; }

 private:
  int64_t id_ = -1;
  void* process_ = nullptr;  // Windows: handles of the process and of the job that holds its group
  void* job_ = nullptr;
};

/// Whether a process can be a copy of this one: not on Windows.
bool can_fork();

/// While it lives, a signal that ends this process (Ctrl-C, SIGTERM, SIGHUP) kills the groups of the processes that
/// were added first. Windows does that for every process that Program starts.
class ChildrenEndOnSignals {
 public:
  ChildrenEndOnSignals();
  ~ChildrenEndOnSignals();
  ChildrenEndOnSignals(const ChildrenEndOnSignals&) = delete;
  static void add(int64_t id);
  static void remove(int64_t id);
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

/// In a child process: takes standard output for messages to the parent; what else is written there goes to standard
/// error.
class Answers {
 public:
  /// Throws std::system_error if one of the streams is closed.
  Answers();
  /// Whether all of it was written: the parent may have closed the pipe.
  bool send(const std::string& text) const;

 private:
  int to_;  // never closed, so that only the end of the process is seen as the end
};

/// In a fork: standard output and error go to these, and standard input is empty.
void redirect(int out, int err);
/// In a fork: leads a process group of its own, as Program::group.
void lead_group();

/// Kills this process when its parent ends. False: the parent, whose id is given, has ended already.
bool end_with_parent(int64_t parent);

}  // namespace tutti::os
