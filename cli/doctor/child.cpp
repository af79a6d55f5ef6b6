#include "cli/doctor/child.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "core/os/environment.h"
#include "core/os/file.h"
#include "core/os/this_process.h"

namespace tutti::cli {
namespace {

constexpr size_t most_text = 1 << 20;

/// Reads both pipes until the child closes them or the deadline passes.
void collect(Child& child, std::vector<int> from, os::Deadline end) {
  std::array<char, 4096> room{};
  while (from[0] >= 0 || from[1] >= 0) {
    const std::vector<bool> ready = os::wait_readable(from, end);
    if (!ready[0] && !ready[1]) {
      child.timed_out = true;
      return;
    }
    for (size_t k = 0; k < from.size(); ++k) {
      if (from[k] < 0 || !ready[k]) continue;
      const int64_t n = os::read_some(from[k], room.data(), room.size());
      if (n <= 0)
        from[k] = -1;
      else if (std::string& text = k == 0 ? child.out : child.err; text.size() < most_text)
        text.append(room.data(), static_cast<size_t>(n));
    }
  }
}

/// Runs what `start` makes of two pipes for stdout and stderr.
template <class Start>
Child run(double seconds, Start start) {
  os::Pipe out, err;
  auto begin = os::Deadline::clock::now();
  os::ChildProcess process(start(out.ends[1], err.ends[1]));
  out.close_end(1);
  err.close_end(1);
  Child child;
  collect(child, {out.ends[0], err.ends[0]}, os::deadline_in(seconds));
  if (child.timed_out) process.kill();
  static_cast<os::Ending&>(child) = process.wait();
  child.seconds = std::chrono::duration<double>(os::Deadline::clock::now() - begin).count();
  return child;
}

}  // namespace

std::string Child::ending() const { return timed_out ? fmt::format("not finished within {:.0f} s", seconds) : text(); }

Child run_self(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& environment,
               double seconds) {
  std::vector<std::string> words = {"tutti"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run(seconds, [&](int out, int err) {
    return os::Program{.file = os::own_program(),
                       .words = words,
                       .environment = os::environment_with(environment),
                       .out = out,
                       .err = err,
                       .group = true};  // so that compilers started by a driver are killed too
  });
}

Child run_apart(const std::function<std::string()>& probe, double seconds) {
  if (!os::can_fork()) {
    Child child;
    child.exit_code = 0;
    child.out = probe();
    return child;
  }
  return run(seconds, [&](int out, int err) {
    return [&probe, out, err] {
      os::lead_group();
      os::redirect(out, err);
      const std::string text = probe();
      std::_Exit(os::write_all(1, text.data(), text.size()) ? 0 : 1);
    };
  });
}

}  // namespace tutti::cli
