#include "train/bench/peer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "graph/passes/lower.h"

extern char** environ;

namespace tutti::bench {
namespace {

using Json = nlohmann::json;
constexpr std::chrono::seconds patience{240};  // for one answer: a first import or a compilation takes its time

/// A child that answers lines with lines.
class Process {
 public:
  explicit Process(const PeerOptions& o) : name_(o.name) {
    int ends[2];  // a socket, so that a write to a child that ended is an error and no signal
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw Error(Code::internal, fmt::format("peer {}: {}", o.name, std::strerror(errno)));
    socket_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::vector<std::string> words = {o.python, "-B", "-u", o.script, o.name, "--threads", std::to_string(o.threads)};
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    std::vector<std::string> settings;
    // Our threads are bound to cores of their own; a peer whose threads share one core would be judged by that.
    if (!std::getenv("OMP_PROC_BIND")) settings.emplace_back("OMP_PROC_BIND=true");
    std::vector<char*> env;
    for (char** e = environ; *e; ++e) env.push_back(*e);
    for (std::string& s : settings) env.push_back(s.data());
    env.push_back(nullptr);
    int error = posix_spawnp(&pid_, o.python.c_str(), &actions, nullptr, argv.data(), env.data());
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (error != 0) {
      pid_ = -1;
      stop();
      throw invalid(fmt::format("peer {}: cannot run {}: {}", o.name, o.python, std::strerror(error)),
                    "name an interpreter with --python or TUTTI_PYTHON");
    }
  }
  Process(const Process&) = delete;
  ~Process() { stop(); }

  /// Throws Error(declined) where the peer says so, Error(internal) when it fails, ends or stays silent.
  Json ask(const Json& request) {
    if (socket_ < 0) throw Error(Code::internal, fmt::format("peer {}: it has ended", name_));
    std::string line = request.dump() + "\n";
    if (::send(socket_, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
      lost("it has ended");
    return answer();
  }

  Json answer() {
    Json reply = Json::parse(read_line(), nullptr, false);
    if (!reply.is_object()) lost("its answer is no JSON object");
    if (!reply.contains("error")) return reply;
    bool declined = reply.value("declined", false);
    throw Error(declined ? Code::declined : Code::internal, reply.value("error", std::string("?")));
  }

 private:
  std::string read_line() {
    auto end = std::chrono::steady_clock::now() + patience;
    for (;;) {
      if (size_t at = pending_.find('\n'); at != std::string::npos) {
        std::string line = pending_.substr(0, at);
        pending_.erase(0, at + 1);
        return line;
      }
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
      pollfd wait{socket_, POLLIN, 0};
      int ready = left > 0 ? ::poll(&wait, 1, static_cast<int>(left)) : 0;
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) lost(fmt::format("no answer for {} s", patience.count()));
      char part[4096];
      ssize_t n = ::read(socket_, part, sizeof part);
      if (n <= 0) lost("it has ended");
      pending_.append(part, static_cast<size_t>(n));
    }
  }

  [[noreturn]] void lost(const std::string& why) {
    stop();
    throw Error(Code::internal, fmt::format("peer {}: {}", name_, why));
  }

  void stop() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
    if (pid_ <= 0) return;
    ::kill(pid_, SIGTERM);  // it holds nothing that is worth a farewell
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
  }

  std::string name_, pending_;
  int socket_ = -1;
  pid_t pid_ = -1;
};

Json json_of(const Case& c, const std::string& device) {
  Json j;
  if (c.model)
    j = Json::parse(c.model->peer);
  else
    j = {{"op", c.op->op}, {"shape", c.op->shape}};
  j["kind"] = c.model ? "model" : "op";
  j["precision"] = name(c.precision);
  j["device"] = device;
  return j;
}

class RunningPeer : public Running {
 public:
  RunningPeer(std::shared_ptr<Process> process, const Case& c, const std::string& device, double& first_seconds)
      : process_(std::move(process)) {
    Json reply = process_->ask({{"do", "open"}, {"case", json_of(c, device)}});
    number_ = reply.at("number");
    first_seconds = reply.at("first_s");
    if (!c.model) effort_ = effort_of(Lowered(build(*c.op, compute_dtype(c.precision))).program());
  }
  ~RunningPeer() override {
    try {
      process_->ask({{"do", "close"}, {"number", number_}});
    } catch (const std::exception&) {  // it has ended, and the next case says so
    }
  }
  double run(int64_t runs) override {
    return process_->ask({{"do", "run"}, {"number", number_}, {"runs", runs}}).at("seconds");
  }
  void describe(Measurement& m) override { m.effort = effort_; }  // of a model: what a device counts, see measure.cpp

 private:
  std::shared_ptr<Process> process_;
  int64_t number_ = 0;
  Effort effort_;
};

class PeerLane : public Lane {
 public:
  PeerLane(std::shared_ptr<Process> process, LaneInfo info) : process_(std::move(process)), info_(std::move(info)) {}
  const LaneInfo& info() const override { return info_; }
  std::unique_ptr<Running> open(const Case& c, double& first_seconds) override {
    return std::make_unique<RunningPeer>(process_, c, info_.kind, first_seconds);
  }

 private:
  std::shared_ptr<Process> process_;
  LaneInfo info_;
};

}  // namespace

std::vector<std::unique_ptr<Lane>> peer_lanes(const PeerOptions& options) {
  auto process = std::make_shared<Process>(options);
  Json hello;
  try {
    hello = process->answer();
  } catch (const Error& e) {
    throw invalid(fmt::format("peer {}: {} ({})", options.name, e.what(), options.python),
                  "name an interpreter that has it with --python or TUTTI_PYTHON");
  }
  std::vector<std::unique_ptr<Lane>> lanes;
  for (const Json& device : hello.at("devices")) {
    std::string kind = device.at("kind");
    if (kind == "cuda" && !options.cuda) continue;
    lanes.push_back(std::make_unique<PeerLane>(process, LaneInfo{.id = options.name + ":" + kind,
                                                                 .peer = true,
                                                                 .name = device.at("name"),
                                                                 .driver = hello.at("engine"),
                                                                 .kind = kind,
                                                                 .peaks = {}}));
  }
  return lanes;
}

}  // namespace tutti::bench
