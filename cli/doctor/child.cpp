#include "cli/doctor/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace tutti::cli {
namespace {

constexpr size_t most_text = 1 << 20;

/// Reads both pipes until the child closes them or the deadline passes.
void collect(Child& child, std::array<pollfd, 2> from, Deadline end) {
  std::array<char, 4096> room{};
  while (from[0].fd >= 0 || from[1].fd >= 0) {
    if (!wait_readable(from.data(), from.size(), end)) {
      child.timed_out = true;
      return;
    }
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

/// Runs `body` in a child with stdout and stderr redirected to pipes.
Child run(const std::function<void()>& body, double seconds) {
  Pipe out, err;
  auto start = Deadline::clock::now();
  ChildProcess process([&] {
    setpgid(0, 0);  // so that compilers started by a driver are killed too
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    dup2(out.ends[1], STDOUT_FILENO);
    dup2(err.ends[1], STDERR_FILENO);
    body();
  });
  out.close_end(1);
  err.close_end(1);
  Child child;
  collect(child, {pollfd{out.ends[0], POLLIN, 0}, pollfd{err.ends[0], POLLIN, 0}}, deadline_in(seconds));
  if (child.timed_out) process.kill(SIGKILL);
  static_cast<Ending&>(child) = process.wait();
  child.seconds = std::chrono::duration<double>(Deadline::clock::now() - start).count();
  return child;
}

}  // namespace

std::string Child::ending() const { return timed_out ? fmt::format("not finished within {:.0f} s", seconds) : text(); }

Child run_self(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& environment,
               double seconds) {
  std::vector<std::string> words = {"tutti"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run(
      [&] {
        for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
        execv("/proc/self/exe", pointers_to(words).data());
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
