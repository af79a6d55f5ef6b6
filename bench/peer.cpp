#include "bench/peer.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "core/base/option_text.h"
#include "core/os/environment.h"
#include "core/os/process.h"
#include "graph/lower/lower.h"

namespace tutti::bench {
namespace {

using Json = nlohmann::json;
constexpr double patience = 240;  // timeout in seconds for one answer; the first import and compilations are slow

/// A child process with a line-based request protocol.
class Process {
 public:
  explicit Process(const PeerOptions& o) : name_(o.name) {
    std::vector<std::string> words = {o.python, "-B", "-u", o.script, o.name, "--threads", std::to_string(o.threads)};
    // Binds the peer's threads to cores, like Tutti's; the comparison would be unfair if they shared a core.
    std::map<std::string, std::string> binding;
    if (!std::getenv("OMP_PROC_BIND")) binding["OMP_PROC_BIND"] = "true";
    try {
      process_.emplace(os::Program{.file = o.python,
                                   .words = std::move(words),
                                   .environment = os::environment_with(binding),
                                   .in = talk_.child_in(),
                                   .out = talk_.child_out(),
                                   .ends_with_us = false});
    } catch (const std::system_error& e) {
      throw invalid(fmt::format("peer {}: cannot run {}", o.name, e.what()),
                    fmt::format("give a Python interpreter with {} or TUTTI_PYTHON", option_text("python")));
    }
    talk_.close_child_ends();
  }
  Process(const Process&) = delete;
  ~Process() { stop(); }

  /// Throws Error(declined) if the peer declines, Error(internal) if it fails, ends or times out.
  Json ask(const Json& request) {
    if (!process_) throw Error(Code::internal, fmt::format("peer {}: it has ended", name_));
    std::string line = request.dump() + "\n";
    if (!talk_.send(line)) lost("it has ended");
    return answer();
  }

  Json answer() {
    Json reply = Json::parse(read_line(), nullptr, false);
    if (!reply.is_object()) lost("its answer is not a JSON object");
    if (!reply.contains("error")) return reply;
    bool declined = reply.value("declined", false);
    throw Error(declined ? Code::declined : Code::internal, reply.value("error", std::string("?")));
  }

 private:
  std::string read_line() {
    std::string text;
    os::LineReader::Result got = lines_.next(talk_.from(), text, os::deadline_in(patience));
    if (got == os::LineReader::silent) lost(fmt::format("no answer within {} s", patience));
    if (got == os::LineReader::closed) lost("it has ended");
    return text;
  }

  [[noreturn]] void lost(const std::string& why) {
    stop();
    throw Error(Code::internal, fmt::format("peer {}: {}", name_, why));
  }

  void stop() {
    talk_.close();
    process_.reset();
  }

  std::string name_;
  os::Conversation talk_;
  std::optional<os::ChildProcess> process_;
  os::LineReader lines_;
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
    if (!c.model) cost_ = estimate_cost(Lowered(build(*c.op, compute_dtype(c.precision))).program());
  }
  ~RunningPeer() override {
    try {
      process_->ask({{"do", "close"}, {"number", number_}});
    } catch (const std::exception&) {  // the process has ended; the next case reports it
    }
  }
  double run(int64_t runs) override {
    return process_->ask({{"do", "run"}, {"number", number_}, {"runs", runs}}).at("seconds");
  }
  void describe(Measurement& m) override { m.cost = cost_; }  // for models, the device's count is used, see measure.cpp

 private:
  std::shared_ptr<Process> process_;
  int64_t number_ = 0;
  CostEstimate cost_;
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
    throw invalid(
        fmt::format("peer {}: {} ({})", options.name, e.what(), options.python),
        fmt::format("give a Python interpreter that has it installed with {} or TUTTI_PYTHON", option_text("python")));
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
