// tutti top: shows the load of devices and active runs.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>

#include "cli/command.h"
#include "cli/number.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/top/load.h"
#include "cli/top/running.h"
#include "core/base/option_text.h"
#include "core/base/text.h"
#include "core/os/signals.h"
#include "core/os/terminal.h"
#include "core/os/this_process.h"
#include "core/runtime/selector.h"

namespace tutti::cli {
namespace {

constexpr std::chrono::milliseconds blink{300};  // interval between the first two samples

std::string percent(std::optional<double> share) { return share ? fmt::format("{:.0f} %", 100 * *share) : "-"; }

struct TopCommand {
  double watch = 0;
  bool json = false;

  Load load;
  std::map<int64_t, double> before;  // CPU seconds of each run at the previous sample
  std::chrono::steady_clock::time_point looked = std::chrono::steady_clock::now();

  nlohmann::ordered_json look() {
    auto now = std::chrono::steady_clock::now();
    double seconds = std::chrono::duration<double>(now - looked).count();
    looked = now;
    load.look();
    std::vector<Running> runs = running();
    std::map<int64_t, os::ProcessUse> uses;
    for (const Running& run : runs)
      if (os::ProcessUse use; os::process_use(run.pid, use)) uses[run.pid] = use;
    nlohmann::ordered_json out{{"devices", nlohmann::json::array()}, {"runs", nlohmann::json::array()}};
    for (const Ranked& r : rank_devices(Registry::instance(), "auto")) {
      const Device& d = r.device;
      if (!d.unusable.empty()) continue;
      auto busy = load.of(d);
      bool known = d.memory_total > 0 && d.memory_free > 0;
      out["devices"].push_back(
          {{"id", d.id},
           {"name", d.name},
           {"memory_total", d.memory_total},
           {"memory_used", known ? nlohmann::json(d.memory_total - d.memory_free) : nlohmann::json()},
           {"busy", busy ? nlohmann::json(*busy) : nlohmann::json()},
           {"runs",
            std::ranges::count_if(runs, [&](const Running& x) { return x.says.value("device", "") == d.id; })}});
    }
    std::map<int64_t, double> after;
    for (const Running& run : runs) {
      auto use = uses.find(run.pid);
      if (use == uses.end()) continue;
      after[run.pid] = use->second.seconds;
      nlohmann::ordered_json one{{"pid", run.pid}};
      for (const auto& [key, value] : run.says.items()) one[key] = value;
      one["resident_bytes"] = use->second.resident;
      auto it = before.find(run.pid);
      one["processors"] = it != before.end() && seconds > 0
                              ? nlohmann::json((use->second.seconds - it->second) / seconds)
                              : nlohmann::json();
      out["runs"].push_back(std::move(one));
    }
    before = std::move(after);
    return out;
  }

  static void print(const nlohmann::ordered_json& now) {
    fmt::print("{:<14} {:>6} {:>22}  {:>4}  {}\n", "device", "busy", "memory in use", "runs", "name");
    for (const auto& d : now.at("devices")) {
      std::optional<double> busy;
      if (!d.at("busy").is_null()) busy = d.at("busy").get<double>();
      std::string memory = d.at("memory_used").is_null()
                               ? "-"
                               : fmt::format("{} of {}", bytes_text(d.at("memory_used").get<uint64_t>()),
                                             bytes_text(d.at("memory_total").get<uint64_t>()));
      print_out("{:<14} {:>6} {:>22}  {:>4}  {}\n", d.at("id").get<std::string>(), percent(busy), memory,
                d.at("runs").get<int>(), d.at("name").get<std::string>());
    }
    if (now.at("runs").empty()) {
      fmt::print("\nno training run of this user is active\n");
      return;
    }
    fmt::print("\n{:>8}  {:<12} {:<20} {:>17} {:>10} {:>10} {:>9} {:>11} {:>10}\n", "pid", "device", "model", "step",
               "loss", "samples/s", "left", "memory", "processors");
    for (const auto& r : now.at("runs")) {
      double rate = r.value("samples_per_s", 0.0), batch = r.value("batch", 0.0);
      int64_t step = r.value("step", int64_t{0}), steps = r.value("steps", int64_t{0});
      double left = rate > 0 ? static_cast<double>(steps - step) * batch / rate : -1;
      print_out("{:>8}  {:<12} {:<20} {:>17} {:>10.4g} {:>10.4g} {:>9} {:>11} {:>10}\n", r.at("pid").get<int64_t>(),
                r.value("device", "?"), r.value("model", "?"), fmt::format("{} of {}", step, steps),
                r.value("loss", std::nan("")), rate, left < 0 ? "-" : clock_text(left),
                bytes_text(r.value("memory_bytes", uint64_t{0})),
                r.at("processors").is_null() ? "-" : fmt::format("{:.1f}", r.at("processors").get<double>()));
    }
  }

  int operator()() {
    if (watch < 0)
      throw invalid_option("watch", watch, "the refresh interval in seconds must be at least 0",
                           "0 shows the state once");
    os::catch_signals();
    look();
    std::this_thread::sleep_for(blink);
    for (;;) {
      Registry::instance().renew();
      nlohmann::ordered_json now = look();
      if (json && watch > 0)
        fmt::print("{}\n", now.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
      else if (json)
        print_json(now);
      else {
        if (watch > 0 && os::is_terminal(os::Stream::out)) fmt::print("\033[H\033[2J");
        print(now);
      }
      std::fflush(stdout);
      if (watch == 0 || std::ferror(stdout)) return done;
      auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(watch);
      while (!os::interrupted() && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (os::interrupted()) return done;
      if (!json && !os::is_terminal(os::Stream::out)) fmt::print("\n");
    }
  }
};

}  // namespace

void add_top(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("top", "Show the load of devices, and running training processes");
  static TopCommand command;
  sub->add_option("--watch", command.watch, "Refresh every N seconds until Ctrl-C (0: show once)")->check(real);
  add_json_flag(*sub, command.json);
  sub->footer(
      "busy: of all processors for CPU devices; as reported by the driver for GPUs.\n"
      "Runs are the `tutti train` processes of this user on this machine.\n"
      "Example: tutti top --watch 2");
  sub->callback([&action] { action = [] { return command(); }; });
}

}  // namespace tutti::cli
