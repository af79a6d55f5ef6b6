#include "core/runtime/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include "core/base/status.h"

namespace tutti {
namespace {

[[noreturn]] void give_up(const char* what) {
  throw Error(Code::internal, fmt::format("{}: {}", what, std::strerror(errno)));
}

}  // namespace

Deadline deadline_in(double seconds) {
  std::chrono::duration<double> left(std::min(seconds, 1e9));  // larger values would overflow
  return Deadline::clock::now() + std::chrono::duration_cast<Deadline::duration>(left);
}

bool wait_readable(pollfd* of, size_t count, Deadline end) {
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Deadline::clock::now()).count();
    if (left <= 0) return false;
    int ready = ::poll(of, count, static_cast<int>(std::min<int64_t>(left, 1 << 30)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) give_up("waiting for a process");
  }
}

Pipe::Pipe() {
  if (pipe2(ends.data(), O_CLOEXEC) != 0) give_up("cannot create a pipe");
}

Pipe::~Pipe() {
  close_end(0);
  close_end(1);
}

void Pipe::close_end(size_t k) {
  if (ends[k] >= 0) ::close(std::exchange(ends[k], -1));
}

std::string Ending::text() const {
  if (!signal) return fmt::format("exit code {}", exit_code);
  const char* name = sigabbrev_np(signal);
  return fmt::format("signal {} ({}{})", signal, name ? fmt::format("SIG{}: ", name) : "", strsignal(signal));
}

ChildProcess::ChildProcess(const std::function<void()>& body) {
  pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) give_up("cannot start a process");
  if (pid_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the parent ended before prctl
  try {
    body();
  } catch (const std::exception& e) {  // must not continue as a second parent
    std::fprintf(stderr, "%s\n", e.what());
  }
  _exit(127);
}

ChildProcess::~ChildProcess() {
  if (pid_ <= 0) return;
  kill(SIGKILL);
  wait();
}

void ChildProcess::kill(int signal) const {
  if (pid_ <= 0) return;
  ::kill(pid_, signal);
  ::kill(-pid_, signal);
}

bool ChildProcess::ends_by(Deadline end) const {
  for (;;) {
    siginfo_t info = {};
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid_)
      return true;
    if (Deadline::clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Ending ChildProcess::wait() {
  int status = 0;
  siginfo_t info = {};
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  ::kill(-pid_, SIGKILL);  // before waitpid, while the pid cannot be reused
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  Ending e;
  if (WIFEXITED(status)) e.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) e.signal = WTERMSIG(status);
  return e;
}

LineReader::Result LineReader::next(int from, std::string& text, Deadline end) {
  for (;;) {
    if (size_t at = pending_.find('\n'); at != std::string::npos) {
      text = pending_.substr(0, at);
      pending_.erase(0, at + 1);
      return line;
    }
    pollfd p = {from, POLLIN, 0};
    if (!wait_readable(&p, 1, end)) return silent;
    char part[4096];
    ssize_t n = ::read(from, part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return closed;
    pending_.append(part, static_cast<size_t>(n));
  }
}

std::vector<std::string> environment_with(const std::string& name, const std::string& value) {
  std::vector<std::string> all;
  for (char** v = environ; *v; ++v)
    if (!std::string_view(*v).starts_with(name + "=")) all.emplace_back(*v);
  all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& w : words) all.push_back(w.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace tutti
