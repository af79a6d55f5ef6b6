// tutti compare: the results of several runs side by side.

#include "cli/compare/run_record.h"
#include "cli/output_file.h"
#include "cli/print.h"

namespace tutti::cli {
namespace {

struct CompareCommand {
  std::vector<std::string> paths;
  std::string sort, report;
  bool json = false;

  int operator()() const {
    check_target("--report", report);
    std::vector<RunRecord> runs;
    for (const std::string& path : paths) runs.push_back(read_record(path));
    if (!sort.empty()) sort_by(runs, sort);
    if (json)
      print_json(document_of(runs));
    else
      print_out("{}", table_of(runs));
    write_target(report, report.empty() ? "" : page_of(runs));
    return done;
  }
};

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("compare", "Compare finished training runs: options that differ, results, speed");
  static CompareCommand c;
  sub->add_option("RUN", c.paths, "Folders of `train --log-dir`, or files with what `train --json` printed")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  sub->add_option("--sort", c.sort, "Sort by test_loss, accuracy or another number of the table, best first");
  sub->add_option("--report", c.report, "Write the table and the curves as a page here (.html)");
  add_json_flag(*sub, c.json);
  sub->footer("Example: tutti compare runs/a runs/b --sort accuracy --report runs.html");
  sub->callback([&action] { action = [] { return c(); }; });
}

}  // namespace tutti::cli
