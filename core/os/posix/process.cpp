#include "core/os/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

namespace tutti::os {
namespace {

[[noreturn]] void give_up(const std::string& what, int why = errno) {
  throw std::system_error(why, std::generic_category(), what);
}

pid_t pid_of(int64_t id) { return static_cast<pid_t>(id); }

/// For exec: pointers into `words`, then a null pointer.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& w : words) all.push_back(w.data());
  all.push_back(nullptr);
  return all;
}

/// In a fork: gives it the standard streams and becomes the program.
void become(const Program& program, char* const* argv, char* const* envp) {
  if (program.group) setpgid(0, 0);
  const int streams[] = {program.in, program.out, program.err};
  for (int k = 0; k < 3; ++k) {
    int from = streams[k];
    if (from == nothing) from = open("/dev/null", (k == 0 ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
    if (from == k) fcntl(k, F_SETFD, 0);
    if (from >= 0 && from != k) dup2(from, k);
  }
  execvpe(program.file.c_str(), argv, envp);
}

pid_t spawn(const Program& program, char* const* argv, char* const* envp) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  const int streams[] = {program.in, program.out, program.err};
  for (int k = 0; k < 3; ++k) {
    const bool closed = streams[k] == inherited && fcntl(k, F_GETFD) < 0;
    if (streams[k] >= 0)
      posix_spawn_file_actions_adddup2(&files, streams[k], k);
    else if (streams[k] == nothing || closed)
      posix_spawn_file_actions_addopen(&files, k, "/dev/null", k == 0 ? O_RDONLY : O_WRONLY, 0);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t usual;  // the default signal handling, whatever this process changed
  sigemptyset(&usual);
  posix_spawnattr_setsigmask(&attributes, &usual);
  sigaddset(&usual, SIGPIPE);
  sigaddset(&usual, SIGXFSZ);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  if (program.group) {
    posix_spawnattr_setpgroup(&attributes, 0);
    flags |= POSIX_SPAWN_SETPGROUP;
  }
  posix_spawnattr_setflags(&attributes, static_cast<short>(flags));
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, program.file.c_str(), &files, &attributes, argv, envp);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) give_up(program.file, error);
  return pid;
}

}  // namespace

std::vector<bool> wait_readable(const std::vector<int>& pipes, Deadline end) {
  std::vector<pollfd> of;
  for (int pipe : pipes) of.push_back({pipe, POLLIN, 0});
  std::vector<bool> ready(pipes.size());
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Deadline::clock::now()).count();
    if (left <= 0) return ready;
    int some = ::poll(of.data(), of.size(), static_cast<int>(std::min<int64_t>(left, 1 << 30)));
    if (some < 0 && errno != EINTR) give_up("waiting for a process");
    if (some <= 0) continue;
    for (size_t k = 0; k < of.size(); ++k) ready[k] = of[k].revents != 0;
    return ready;
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

// A socket: writing to a terminated child gives an error instead of a signal.
Conversation::Conversation() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) give_up("cannot create a socket");
  ends_ = {ends[1], ends[1], ends[0], ends[0]};
}

Conversation::~Conversation() {
  close_child_ends();
  close();
}

void Conversation::close_child_ends() {
  if (ends_[0] >= 0) ::close(ends_[0]);
  ends_[0] = ends_[1] = -1;
}

bool Conversation::send(const std::string& text) const {
  return ends_[3] >= 0 && ::send(ends_[3], text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

void Conversation::close() {
  if (ends_[2] >= 0) ::close(ends_[2]);
  ends_[2] = ends_[3] = -1;
}

std::string Ending::text() const {
  if (!signal) return fmt::format("exit code {}", exit_code);
  const char* name = sigabbrev_np(signal);
  return fmt::format("signal {} ({}{})", signal, name ? fmt::format("SIG{}: ", name) : "", strsignal(signal));
}

ChildProcess::ChildProcess(const Program& program) {
  std::vector<std::string> words = program.words;
  std::vector<std::string> variables = program.environment;
  std::vector<char*> argv = pointers_to(words), envp = pointers_to(variables);
  char* const* environment = variables.empty() ? environ : envp.data();
  if (!program.ends_with_us) {
    id_ = spawn(program, argv.data(), environment);
    return;
  }
  ChildProcess forked([&] { become(program, argv.data(), environment); });
  id_ = std::exchange(forked.id_, -1);
}

ChildProcess::ChildProcess(const std::function<void()>& body) {
  pid_t parent = getpid();
  id_ = fork();
  if (id_ < 0) give_up("cannot start a process");
  if (id_ > 0) return;
  if (!end_with_parent(parent)) _exit(127);
  try {
    body();
  } catch (const std::exception& e) {  // must not continue as a second parent
    std::fprintf(stderr, "%s\n", e.what());
  }
  _exit(127);
}

ChildProcess::~ChildProcess() {
  if (id_ <= 0) return;
  kill();
  wait();
}

void ChildProcess::kill() const {
  if (id_ <= 0) return;
  ::kill(pid_of(id_), SIGKILL);
  ::kill(-pid_of(id_), SIGKILL);
}

void ChildProcess::ask_to_end() const {
  if (id_ > 0) ::kill(pid_of(id_), SIGTERM);
}

bool ChildProcess::ends_by(Deadline end) const {
  for (;;) {
    siginfo_t info = {};
    if (waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == id_)
      return true;
    if (Deadline::clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Ending ChildProcess::wait() {
  int status = 0;
  siginfo_t info = {};
  while (waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  ::kill(-pid_of(id_), SIGKILL);  // before waitpid, while the pid cannot be reused
  while (waitpid(pid_of(id_), &status, 0) < 0 && errno == EINTR) {
  }
  id_ = -1;
  Ending e;
  if (WIFEXITED(status)) e.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) e.signal = WTERMSIG(status);
  return e;
}

bool can_fork() { return true; }

Answers::Answers() : to_(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) {
  if (to_ < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) give_up("stdout and stderr must be open");
}

void redirect(int out, int err) {
  dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
}

void lead_group() { setpgid(0, 0); }

bool end_with_parent(int64_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return getppid() == parent;  // else it ended before prctl
}

}  // namespace tutti::os
