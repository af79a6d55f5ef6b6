// tutti conformance: holds one plugin to the promises of the ABI.
#include "train/conformance/conformance.h"

#include <fmt/format.h>

#include <chrono>

#include "cli/output_file.h"
#include "core/base/status.h"

namespace tutti::cli {
namespace {

struct ConformanceCommand {
  conformance::Options options;
  std::string file, json, junit;
  bool list = false;

  int print_list() const {
    for (const conformance::Result& r : conformance::list(options.only))
      fmt::print("{:<32} {}{}\n", r.id, r.doc, r.must ? "" : " (not on the must-pass list)");
    return done;
  }

  int operator()() {
    if (list) return print_list();
    if (file.empty()) throw invalid("no plugin named", "tutti conformance libtutti_NAME.so");
    if (!(options.timeout > 0)) throw invalid(fmt::format("--timeout {:g}: must be above 0", options.timeout));
    if (options.device < -1) throw invalid(fmt::format("--device-index {}: must be at least 0", options.device));
    options.file = file;
    check_target("--json", json);
    check_target("--junit", junit);
    auto told = std::chrono::steady_clock::now();
    options.watch = [&](const conformance::Result& r, size_t number, size_t of) {
      if (r.broken()) fmt::print(stderr, "{} {}\n", parity::name(r.outcome), r.id);
      if (auto now = std::chrono::steady_clock::now(); now - told > std::chrono::seconds(5)) {
        fmt::print(stderr, "{} of {} checks ({})\n", number, of, r.id);
        told = now;
      }
    };
    conformance::Report report = conformance::run(options);
    write_target(json, conformance::to_json(report));
    write_target(junit, conformance::to_junit(report));
    fmt::print(json == "-" || junit == "-" ? stderr : stdout, "{}", conformance::to_text(report));
    return !report.ok() ? stopped : report.incomplete() ? incomplete : done;
  }
};

}  // namespace

void add_conformance(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand(
      "conformance",
      "Hold a plugin to the ABI's promises, in processes of its own; exit code 0: the must-pass list "
      "holds, 1: it does not, 3: what needs no device passes, but none can be used here");
  static ConformanceCommand c;
  sub->add_option("file", c.file, "The plugin's library (its manifest is the .json beside it that names it)");
  sub->add_option("--only", c.options.only, "Only checks whose id fits one of these, such as 'memory.*,op.matmul'");
  sub->add_flag("--list", c.list, "Name the checks and what must hold, and run none");
  sub->add_flag("--full", c.options.full, "Every case of `tutti parity` and longer training, in place of a light set");
  sub->add_option("--device-index", c.options.device, "Of the plugin's devices (-1: the first that can be used)");
  sub->add_option("--timeout", c.options.timeout, "Seconds that one check may take; ten times as many with --full");
  add_json_target(*sub, c.json);
  sub->add_option("--junit", c.junit, "Write the result as JUnit XML to this file ('-': stdout)");
  sub->callback([&action] { action = [] { return c(); }; });
}

}  // namespace tutti::cli
