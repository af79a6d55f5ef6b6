#include "cli/report/run_report.h"

#include "bench/result.h"
#include "cli/output_file.h"
#include "cli/print.h"
#include "cli/run_file.h"
#include "core/base/option_text.h"

namespace tutti::cli {

void RunReport::add_to(CLI::App& sub) {
  sub.add_option(
         "--report", target_,
         "Write the run as one page here (.html): curves, results, memory, what ran where; also of a run that is "
         "stopped")
      ->group("Files");
}

void RunReport::check() const {
  if (target_ == "-") throw invalid_option("report", "-", "a page cannot be written to stdout", "name a file");
}

void RunReport::look(Trainer& trainer, const RunOptions& run, const data::Sources& data) {
  if (!asked() || trainer.steps() == 0) return;
  page_.confusion = confusion(trainer, *data.test);
  if (page_.confusion) page_.mistakes = pictures(*data.test, page_.confusion->mistakes);
  page_.drawn = drawn(trainer, run, *data.train);
  page_.written = written(trainer, run, *data.test);
}

bool RunReport::write(const nlohmann::ordered_json& result, const std::string& verdict, const Trainer& trainer,
                      const RunOptions& run) {
  if (!asked()) return true;
  page_.result = result;
  page_.verdict = verdict;
  page_.date = bench::utc_now();
  page_.version = TUTTI_VERSION;
  page_.seconds = trainer.train_seconds();
  page_.fallback = trainer.fallback();
  page_.run_file = run_file_text(run.remembered(), false);
  bool written = try_write_target({"--report", &target_}, page(page_));
  if (written) print_err("written: {}\n", target_);
  return written;
}

}  // namespace tutti::cli
