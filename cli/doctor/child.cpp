#include "cli/doctor/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "core/base/status.h"

namespace tutti::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t most_text = 1 << 20;

struct Pipe {
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      throw Error(Code::internal, fmt::format("no pipe can be made: {}", std::strerror(errno)));
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  void close_end(size_t k) {
    if (ends[k] >= 0) close(ends[k]);
    ends[k] = -1;
  }
  std::array<int, 2> ends = {-1, -1};
};

/// Reads both pipes until the child closed them or the time is over.
void collect(Child& child, std::array<pollfd, 2> from, Clock::time_point end) {
  std::array<char, 4096> room{};
  while (from[0].fd >= 0 || from[1].fd >= 0) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) {
      child.timed_out = true;
      return;
    }
    if (poll(from.data(), from.size(), static_cast<int>(left)) < 0 && errno != EINTR) return;
    for (size_t k = 0; k < from.size(); ++k) {
      if (from[k].fd < 0 || from[k].revents == 0) continue;
      ssize_t n = read(from[k].fd, room.data(), room.size());
      if (n <= 0)
        from[k].fd = -1;
      else if (std::string& text = k == 0 ? child.out : child.err; text.size() < most_text)
        text.append(room.data(), static_cast<size_t>(n));
    }
  }
}

/// Forks; the child calls `body` with stdout and stderr in pipes, and never returns.
Child run(const std::function<void()>& body, double seconds) {
  Pipe out, err;
  auto start = Clock::now();
  pid_t pid = fork();
  if (pid < 0) throw Error(Code::internal, fmt::format("no process can be made: {}", std::strerror(errno)));
  if (pid == 0) {
    setpgid(0, 0);  // a compiler that a driver starts ends with it
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    dup2(out.ends[1], STDOUT_FILENO);
    dup2(err.ends[1], STDERR_FILENO);
    body();
    _exit(127);
  }
  out.close_end(1);
  err.close_end(1);
  Child child;
  auto budget = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  collect(child, {pollfd{out.ends[0], POLLIN, 0}, pollfd{err.ends[0], POLLIN, 0}}, start + budget);
  if (child.timed_out) {
    kill(pid, SIGKILL);
    kill(-pid, SIGKILL);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) child.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) child.signal = WTERMSIG(status);
  child.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return child;
}

}  // namespace

std::string Child::ending() const {
  if (timed_out) return fmt::format("no end within {:.0f} s", seconds);
  if (signal) return fmt::format("signal {} ({})", signal, strsignal(signal));
  return fmt::format("exit code {}", exit_code);
}

Child run_self(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& environment,
               double seconds) {
  std::vector<std::string> words = {"tutti"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run(
      [&] {
        for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
        std::vector<char*> argv;
        for (std::string& w : words) argv.push_back(w.data());
        argv.push_back(nullptr);
        execv("/proc/self/exe", argv.data());
      },
      seconds);
}

Child run_apart(const std::function<std::string()>& probe, double seconds) {
  return run(
      [&] {
        std::string text = probe();
        for (size_t at = 0; at < text.size();) {
          ssize_t n = write(STDOUT_FILENO, text.data() + at, text.size() - at);
          if (n <= 0) _exit(1);
          at += static_cast<size_t>(n);
        }
        _exit(0);
      },
      seconds);
}

}  // namespace tutti::cli
