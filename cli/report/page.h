// A training run as one self-contained HTML page.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "cli/profile.h"
#include "cli/report/confusion.h"
#include "cli/report/curve.h"
#include "cli/report/findings.h"
#include "data/files/event_file.h"
#include "train/run/plan.h"

namespace tutti::cli {

/// Content of the page. Empty parts are omitted.
struct RunPage {
  nlohmann::ordered_json result;             ///< the document of `tutti train --json`
  std::string verdict;                       ///< "finished", "stopped after step 80", "failed: …"
  std::string date, version;                 ///< date: end of the run, UTC
  double seconds = 0;                        ///< training time
  std::map<std::string, Curve> steps;        ///< "loss", "learning_rate", …: by training step
  std::map<std::string, Curve> evaluations;  ///< "loss", "accuracy", …: metrics of the test set, by training step
  std::optional<Confusion> confusion;
  std::vector<std::string> mistakes;  ///< PNG files of confusion->mistakes
  std::string drawn;                  ///< sampled images as a PNG file
  std::optional<Written> written;
  std::optional<MemoryPlan> memory;
  std::vector<ProfileRow> profile;  ///< of --profile
  FallbackReport fallback;
  std::string run_file;  ///< the options as TOML, for --config
};

/// The whole page. Text from user files is escaped.
std::string page(const RunPage& run);

}  // namespace tutti::cli
