#include "cli/world_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "cli/number.h"
#include "cli/print.h"
#include "core/base/cpus.h"
#include "core/base/option_text.h"
#include "core/base/text.h"
#include "core/os/signals.h"
#include "core/world/launch.h"

namespace tutti::cli {
namespace {

/// Of this process, for who ends it.
struct Membership {
  std::shared_ptr<World> world;
  bool expected = false, met = false, failed = false;
};
Membership& membership() {
  static auto& all = *new Membership;
  return all;
}

std::shared_ptr<World> meet(const WorldOptions& options) {
  membership().met = true;  // MPI starts once, whatever comes of it
  membership().world = std::make_shared<World>(options);
  return membership().world;
}

/// A name that may stand in a list: an id, a plugin or a kind.
bool is_plain(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || is_digit(c) || c == '_' || c == ':' || c == '*';
  });
}

}  // namespace

void WorldRun::add_to(CLI::App& sub) {
  option_ = sub.add_option("--world-timeout", timeout_,
                           "Under mpiexec or srun: seconds that a rank may stay behind the others, beyond the longest "
                           "step, before the run ends")
                ->check(real)
                ->group("Device");
}

void WorldRun::open() {
  if (!(timeout_ > 0)) throw invalid_option("world-timeout", timeout_, "must be more than 0", "such as 60");
  if (this_launch().ranks < 2) {
    if (!option_->empty())
      throw invalid_option("world-timeout", "", "has no effect on a single process",
                           "start several: mpiexec -n 2 tutti train …");
    return;
  }
  world_ = meet({.timeout = timeout_, .interrupted = os::interrupted});
  cpus_ = share_cpus(*world_);
  world_->at(0, "preparation");
  muted = !writes();
}

std::string WorldRun::device(const std::string& list) const {
  std::vector<std::string> names = split(list, ',');
  if (names.size() < 2 || !std::ranges::all_of(names, is_plain)) return list;
  if (names.size() != static_cast<size_t>(ranks()))
    throw invalid_option("device", list,
                         fmt::format("{} devices for {} rank{}", names.size(), ranks(), alone() ? "" : "s"),
                         fmt::format("name one device, or one for each rank{}",
                                     alone() ? fmt::format(": mpiexec -n {} tutti train …", names.size()) : ""));
  return names[static_cast<size_t>(world_->rank())];
}

void WorldRun::agree(Settings settings, const data::Source& data, const TrainerOptions& options,
                     const Trainer& trainer) {
  if (alone()) return;
  devices_ = world_->gather(trainer.device().id);
  settings.emplace_back("version", TUTTI_VERSION);
  settings.emplace_back("data", fmt::format("{}, {} samples, {}", data.name, data.size(), data::fingerprint(data)));
  if (!trainer.mixed() && !options.exact) settings.emplace_back("CPUs", std::to_string(cpus_));
  settings.emplace_back("world-timeout", fmt::format("{}", timeout_));
  tutti::agree(*world_, settings);
}

void WorldRun::agree(const Settings& settings) {
  if (!alone()) tutti::agree(*world_, settings);
}

std::string WorldRun::text(const Trainer& trainer) const {
  if (alone()) return "";
  std::string ranks = fmt::format(", one of {} ranks", this->ranks());
  if (trainer.mixed())
    ranks +=
        fmt::format(" on different devices ({}), each of which updates some parameters", fmt::join(devices_, ", "));
  if (const std::vector<int64_t>& shares = trainer.options().divided; !shares.empty())
    ranks += fmt::format(", which compute {} samples of a batch", fmt::join(shares, ", "));
  if (const Collectives sums = trainer.collectives(); sums.by != "host")
    ranks += fmt::format("; gradients are added up by {}", sums.by);
  else if (trainer.device().plugin == "cuda")
    ranks += fmt::format("; gradients are added up on the host: {}", sums.reason);
  return ranks;
}

nlohmann::ordered_json WorldRun::document(const TrainerOptions& options, Trainer& trainer) const {
  if (alone())
    return {{"ranks", 1}, {"reduce", options.reduce}, {"bytes_sent", 0}, {"bytes_early", 0}, {"seconds_waited", 0}};
  std::vector<int64_t> shares = trainer.options().divided;
  if (shares.empty()) shares.assign(static_cast<size_t>(ranks()), options.batch / ranks());
  auto peaks = nlohmann::json::array();
  for (const std::string& bytes : world_->gather(std::to_string(trainer.peak_bytes())))
    peaks.push_back(parse_number<uint64_t>(bytes).value_or(0));
  return {{"ranks", ranks()},
          {"reduce", options.reduce},
          {"shard", trainer.options().shard},
          {"shares", shares},
          {"peak_bytes", peaks},
          {"library", world_->library()},
          {"collectives", trainer.collectives().by},
          {"collectives_reason", trainer.collectives().reason},
          {"hosts", world_->hosts()},
          {"devices", devices_},
          {"cpus", cpus_},
          {"bytes_sent", world_->bytes_sent()},
          {"bytes_early", world_->bytes_early()},
          {"seconds_waited", world_->seconds_waited()}};
}

void expect_world() { membership().expected = true; }

void expect_one_process(const std::string& command) {
  const Launch launch = this_launch();
  if (launch.ranks < 2) return;
  expect_world();
  throw invalid(
      fmt::format("tutti {}: is for one process, and {} started {}", command, launch.by, launch.ranks),
      fmt::format("run it without {}; `tutti train` is for several", launch.by.substr(0, launch.by.find(' '))));
}

void hand_over(const std::string& message, const std::string& remedy, int exit_code) {
  Membership& me = membership();
  me.failed = true;
  try {
    if (me.expected && !me.met && this_launch().ranks > 1) meet({});
  } catch (const Error&) {  // no world can be had: every rank has the same to say, or its launcher ends it first
  }
  if (me.world && me.world->speaker() != me.world->rank()) {
    os::release_signals();  // the launcher ends it
    me.world->hand_over(Error(exit_code == bad_input ? Code::invalid : Code::internal, message, remedy), exit_code);
  }
  if (me.expected && !me.world && this_launch().rank > 0) std::this_thread::sleep_for(std::chrono::seconds(2));
  muted = false;
}

int leave_world(int exit_code) {
  Membership& me = membership();
  if (!me.world) return exit_code;
  std::fflush(stdout);
  std::fflush(stderr);
  if (me.failed) me.world->abort(exit_code);
  try {
    me.world->close();
  } catch (const Error& e) {
    muted = false;
    print_err("tutti: {}\n", e.what());
    me.world->abort(exit_code ? exit_code : stopped);
  }
  return exit_code;
}

}  // namespace tutti::cli
