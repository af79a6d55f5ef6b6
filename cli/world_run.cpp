#include "cli/world_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "cli/number.h"
#include "cli/print.h"
#include "cli/signals.h"
#include "core/base/cpus.h"
#include "core/base/hash.h"
#include "core/base/shape.h"
#include "core/base/text.h"
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

/// A hash of some samples, spread over the set.
std::string fingerprint(const data::Source& set) {
  constexpr int64_t looked_at = 16;
  uint64_t h = fnv1a(nullptr, 0);
  for (const data::Column& column : set.columns()) {
    std::vector<std::byte> sample(num_bytes(column.type));
    for (int64_t k = 0; k < looked_at; ++k) {
      auto at = static_cast<int32_t>(k * (set.size() - 1) / (looked_at - 1));
      set.read(column.name, std::span(&at, 1), sample.data());
      h = fnv1a(sample.data(), sample.size(), h);
    }
  }
  return fmt::format("{:016x}", h);
}

/// A name that may stand in a list: an id, a plugin or a kind.
bool is_plain(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == ':' || c == '*';
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
  if (!(timeout_ > 0)) throw invalid(fmt::format("--world-timeout {}: must be more than 0", timeout_), "such as 60");
  if (this_launch().ranks < 2) {
    if (!option_->empty())
      throw invalid("--world-timeout: has no effect on a single process", "start several: mpiexec -n 2 tutti train …");
    return;
  }
  world_ = meet({.timeout = timeout_, .interrupted = interrupted});
  cpus_ = share_cpus(*world_);
  world_->at(0, "preparation");
  muted = !writes();
}

std::string WorldRun::device(const std::string& list) const {
  std::vector<std::string> names = split(list, ',');
  if (names.size() < 2 || !std::ranges::all_of(names, is_plain)) return list;
  if (names.size() != static_cast<size_t>(ranks()))
    throw invalid(fmt::format("--device {}: {} devices for {} rank{}", list, names.size(), ranks(), alone() ? "" : "s"),
                  fmt::format("name one device, or one for each rank{}",
                              alone() ? fmt::format(": mpiexec -n {} tutti train …", names.size()) : ""));
  return names[static_cast<size_t>(world_->rank())];
}

void WorldRun::agree(Settings settings, const data::Source& data) {
  if (alone()) return;
  settings.emplace_back("version", TUTTI_VERSION);
  settings.emplace_back("data", fmt::format("{}, {} samples, {}", data.name, data.size(), fingerprint(data)));
  settings.emplace_back("CPUs", std::to_string(cpus_));
  settings.emplace_back("world-timeout", fmt::format("{}", timeout_));
  tutti::agree(*world_, settings);
}

void WorldRun::expect_same_state(const std::string& hash, int64_t step) {
  if (alone()) return;
  std::vector<std::string> all = world_->gather(hash);
  auto other = std::ranges::find_if(all, [&](const std::string& h) { return h != all[0]; });
  if (other != all.end())
    throw Error(Code::internal,
                fmt::format("after step {} the state of rank {} is {}, that of rank 0 {}: their devices do not compute "
                            "the same",
                            step, other - all.begin(), *other, all[0]),
                "use equal devices, drivers and libraries; `tutti parity` tests a device");
}

nlohmann::ordered_json WorldRun::document(const std::string& reduce) const {
  if (alone()) return {{"ranks", 1}, {"reduce", reduce}, {"bytes_sent", 0}, {"seconds_waited", 0}};
  return {{"ranks", ranks()},
          {"reduce", reduce},
          {"library", world_->library()},
          {"hosts", world_->hosts()},
          {"cpus", cpus_},
          {"bytes_sent", world_->bytes_sent()},
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
    release_signals();  // the launcher ends it
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
