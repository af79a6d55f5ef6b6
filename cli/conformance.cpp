// tutti conformance: tests one plugin for conformance with the ABI.
#include "verify/conformance/conformance.h"

#include <fmt/format.h>

#include <array>
#include <chrono>

#include "cli/output_file.h"
#include "cli/print.h"
#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/os/library.h"
#include "core/os/signals.h"
#include "core/os/this_process.h"

namespace tutti::cli {
namespace {

struct ConformanceCommand {
  conformance::Options options;
  std::string file, json, junit, job;
  bool list = false;

  void check() const;
  int print_list() const {
    if (!json.empty()) {
      check_target("--json", json);
      nlohmann::ordered_json all = nlohmann::ordered_json::array();
      for (const conformance::Result& r : conformance::list(options.only))
        all.push_back({{"id", r.id}, {"doc", r.doc}, {"must", r.must}});
      write_target(json, nlohmann::ordered_json{{"checks", all}}.dump(2) + "\n");
      return done;
    }
    for (const conformance::Result& r : conformance::list(options.only))
      fmt::print("{:<32} {}{}\n", r.id, r.doc, r.must ? "" : " (not on the must-pass list)");
    return done;
  }

  int operator()() {
    if (!job.empty()) conformance::work(job);
    check();
    if (list) return print_list();
    options.file = file;
    options.command = {os::own_program(), "conformance", "--job"};
    auto reported = std::chrono::steady_clock::now();
    options.watch = [&](const conformance::Result& r, size_t number, size_t of) {
      if (r.broken()) print_err("{} {}\n", parity::name(r.outcome), r.id);
      if (auto now = std::chrono::steady_clock::now(); now - reported > std::chrono::seconds(5)) {
        print_err("{} of {} checks ({})\n", number, of, r.id);
        reported = now;
      }
    };
    os::catch_signals();
    options.stop = os::interrupted;
    conformance::Report report = conformance::run(options);
    os::release_signals();
    if (report.partial)
      print_err("partial: stopped by a signal after {} of {} checks\n", report.results.size(),
                conformance::list(options.only).size());
    if (json == "-" || junit == "-")
      print_err("{}", conformance::to_text(report));
    else
      print_out("{}", conformance::to_text(report));
    bool written = try_write_target({"--json", &json}, conformance::to_json(report));
    written = try_write_target({"--junit", &junit}, conformance::to_junit(report)) && written;
    if (!written) return bad_input;
    if (report.partial) return cut_off;
    return !report.ok() ? stopped : report.incomplete() ? incomplete : done;
  }
};

void ConformanceCommand::check() const {
  if (json.ends_with(os::library_suffix))  // --json takes the next word as its file; do not overwrite a plugin
    throw invalid(fmt::format("{} was interpreted as the file of --json", json), "put --json last or write --json=-");
  if (list) return;
  if (file.empty() && !json.empty() && json != "-")
    throw invalid(fmt::format("no plugin given: {} was interpreted as the file of --json", json),
                  "put --json last or write --json=-");
  if (file.empty()) throw invalid("no plugin given", "tutti conformance libtutti_NAME.so");
  if (!(options.timeout > 0 && options.timeout <= 86400))
    throw invalid_option("timeout", options.timeout, "must be in (0, 86400]");
  if (options.device < -1) throw invalid_option("device-index", options.device, "must be at least 0");
  check_targets(std::array{Target{"--json", &json}, Target{"--junit", &junit}});
}

}  // namespace

void add_conformance(CLI::App& app, Action& action) {
  CLI::App* sub =
      app.add_subcommand("conformance",
                         "Test a plugin against the ABI, in separate processes. Exit code 0: all required checks pass; "
                         "1: one fails; 3: checks without a device pass, but no device can be used here");
  static ConformanceCommand c;
  sub->add_option("file", c.file, "The plugin's library (its manifest is the .json file beside it that names it)");
  sub->add_option("--only", c.options.only,
                  "Run only the checks whose id matches one of these patterns, for example 'memory.*,op.matmul'");
  sub->add_flag("--list", c.list, "List the checks without running them");
  sub->add_flag("--full", c.options.full,
                "Run every case of `tutti parity` and longer training instead of a small set");
  sub->add_option("--device-index", c.options.device,
                  "Index of the plugin's device to test (-1: the first that can be used)");
  sub->add_option("--timeout", c.options.timeout, "Time limit of one check, in seconds; ten times as long with --full");
  add_json_target(*sub, c.json);
  sub->add_option("--junit", c.junit, "Write the result as JUnit XML to this file ('-': stdout)");
  sub->add_option("--job", c.job, "The job of a child process (internal)")->group("");  // hidden
  sub->callback([&action] { action = [] { return c(); }; });
}

}  // namespace tutti::cli
