#include "train/conformance/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/base/status.h"
#include "core/runtime/boundary.h"
#include "train/conformance/bench.h"

namespace tutti::conformance {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

void send(int to, const json& message) {
  std::fflush(nullptr);
  std::string line = message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  for (size_t done = 0; done < line.size();) {
    ssize_t n = ::write(to, line.data() + done, line.size() - done);
    if (n < 0 && errno != EINTR) std::_Exit(3);  // nobody listens any more
    done += n > 0 ? static_cast<size_t>(n) : 0;
  }
}

json run_one(const Check& check, Bench& bench) {
  Findings f;
  auto answer = [&](Outcome outcome, const std::string& why, bool no_device = false) {
    return json{{"outcome", static_cast<int>(outcome)}, {"why", why}, {"no_device", no_device}};
  };
  try {
    check.run(bench, f);
  } catch (const Unsupported& e) {
    if (f.empty()) return answer(Outcome::unsupported, e.what(), e.no_device);
    f.add(e.what());
  } catch (const ExpectedFailure& e) {
    return answer(Outcome::expected, e.what());
  } catch (const Error& e) {
    if (f.empty() && e.code == Code::declined) return answer(Outcome::unsupported, e.what());
    f.add(e.what());
  } catch (const std::exception& e) {
    f.add(e.what());
  }
  return f.empty() ? answer(Outcome::pass, "") : answer(Outcome::fail, f.text());
}

/// Never returns.
[[noreturn]] void work(int to, const Setup& setup, const Checks& checks, size_t first, size_t end) {
  {
    Bench bench(setup);
    for (size_t i = first; i < end; ++i) {
      json answer = run_one(checks[i], bench);
      answer["device"] = bench.device_name();
      send(to, answer);
    }
  }
  send(to, {{"finished", true}});
  std::exit(0);  // a normal end: what the plugin left to be done there is part of the check
}

void give_up(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

Child::Child(const Setup& setup, const Checks& checks, size_t first, size_t end) {
  int ends[2];
  output_ = memfd_create("output", MFD_CLOEXEC);
  if (output_ < 0) give_up("memfd_create");
  if (pipe2(ends, O_CLOEXEC) != 0) give_up("pipe2");
  std::fflush(nullptr);
  pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) give_up("fork");
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) std::_Exit(3);
    rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    setenv("TUTTI_LOG", "error", 1);  // the engine's own lines are told apart by how they begin: see fresh_output
    unsetenv("TUTTI_TRACE");
    fcntl(output_, F_SETFL, O_APPEND);
    dup2(output_, STDOUT_FILENO);
    dup2(output_, STDERR_FILENO);
    close(ends[0]);
    work(ends[1], setup, checks, first, end);
  }
  close(ends[1]);
  pipe_ = ends[0];
}

Child::~Child() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(pipe_);
  close(output_);
}

std::string Child::fresh_output() {
  std::string text(64 * 1024, '\0');
  ssize_t n = pread(output_, text.data(), text.size(), seen_);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  seen_ = lseek(output_, 0, SEEK_END);
  // What the engine logs goes to stderr as well, and is not the plugin's printing.
  std::string kept;
  for (size_t at = 0; at < text.size();) {
    size_t stop = std::min(text.find('\n', at), text.size() - 1) + 1;
    std::string line = text.substr(at, stop - at);
    at = stop;
    bool logged = false;
    for (const char* level : {"error", "warning", "info", "debug"})
      logged = logged || line.starts_with(fmt::format("tutti {} [", level));
    if (!logged) kept += line;
  }
  return clean_text(kept.c_str());
}

Event Child::end(bool killed, double timeout) {
  int status = 0;
  if (killed) kill(pid_, SIGKILL);
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  Event e;
  e.printed = fresh_output();
  if (killed) {
    e.kind = Event::silent;
    e.why = fmt::format("did not return within {:g} s", timeout);
  } else if (WIFSIGNALED(status)) {
    int number = WTERMSIG(status);
    const char* name = sigabbrev_np(number);
    e.why = fmt::format("the process died of {} ({})",
                        name ? fmt::format("SIG{}", name) : fmt::format("signal {}", number), strsignal(number));
  } else {
    e.why = fmt::format("the process ended with exit code {}", WEXITSTATUS(status));
  }
  return e;
}

Event Child::next(double timeout) {
  bool finished = false;
  auto until = Clock::now() + std::chrono::duration<double>(timeout);
  while (true) {
    if (size_t stop = pending_.find('\n'); stop != std::string::npos) {
      json message = json::parse(pending_.substr(0, stop));
      pending_.erase(0, stop + 1);
      if (message.contains("finished")) {
        finished = true;
        continue;
      }
      return {Event::result,           static_cast<Outcome>(message.at("outcome").get<int>()),
              message.at("why"),       message.at("device"),
              message.at("no_device"), fresh_output()};
    }
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd p = {pipe_, POLLIN, 0};
    int ready = left > 0 ? poll(&p, 1, static_cast<int>(std::min<int64_t>(left, 1 << 30))) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return end(true, timeout);
    char buffer[4096];
    ssize_t n = ::read(pipe_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {  // closed: it ended
      Event e = end(false, timeout);
      if (finished && e.why == "the process ended with exit code 0") e.kind = Event::finished;
      return e;
    }
    pending_.append(buffer, static_cast<size_t>(n));
  }
}

}  // namespace tutti::conformance
