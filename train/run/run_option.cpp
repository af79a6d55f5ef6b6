#include "train/run/run_option.h"

#include <fmt/format.h>

#include "core/base/option_text.h"
#include "train/run/goal.h"
#include "train/run/saver.h"

namespace tutti {

std::span<const RunOption> run_options() {
  using S = RunSettings;
  static const auto& all = *new std::vector<RunOption>{
      {.name = "checkpoint",
       .group = "Files",
       .field = &S::checkpoint,
       .doc = "Save a checkpoint here (safetensors) after every epoch and when interrupted",
       .stored = false},
      {.name = "log-dir",
       .group = "Files",
       .field = &S::log_dir,
       .doc = "Write the training curves to this folder: TensorBoard events, steps.csv and epochs.csv",
       .stored = false},
      {.name = "save-every",
       .group = "Files",
       .field = &S::save_every,
       .doc = "Also save within an epoch: every N steps (500), or after this much time (90s, 10m, 2h)"},
      {.name = "keep",
       .group = "Files",
       .field = &S::keep,
       .doc = "Number of checkpoints to keep: FILE and the ones before it, as NAME.step-N.EXT"},
      {.name = "keep-best",
       .group = "Files",
       .field = &S::keep_best,
       .doc = "Also keep the checkpoint with the lowest test loss, as NAME.best.EXT"},
      {.name = "patience",
       .group = "Training",
       .field = &S::patience,
       .doc = "Early stopping: stop after N epochs without a lower test loss (0: off)"},
      {.name = "target",
       .group = "Training",
       .field = &S::target,
       .doc = "Stop after the epoch in which the test set reaches a value: accuracy=0.97, loss=0.1, or METRIC<=VALUE "
              "and METRIC>=VALUE"},
      {.name = "no-eval",
       .group = "Training",
       .field = &S::no_eval,
       .doc = "Do not evaluate on the test set",
       .stored = false,
       .python = "validation=None"},
  };
  return all;
}

void expect_evaluation(const RunSettings& s, std::string_view option, std::string_view value) {
  if (s.no_eval)
    throw invalid_option(option, value,
                         fmt::format("needs the test loss, which {} does not compute", option_text("no-eval")),
                         fmt::format("omit {} or {}", option_text(option), option_text("no-eval")));
}

void check(const RunSettings& s) {
  if (s.keep_best) expect_evaluation(s, "keep-best", "");
  if (s.patience < 0 || (s.patience > 0 && s.no_eval))
    throw invalid_option("patience", s.patience, "must be at least 1, and needs the test loss",
                         s.no_eval ? "use 1 or more, without " + option_text("no-eval") : "use 1 or more");
  Goal::parse(s.target);
  if (s.no_eval && !s.target.empty())
    throw invalid_option("target", s.target, "needs evaluation on the test set",
                         fmt::format("omit {} or {}", option_text("target"), option_text("no-eval")));
  if (s.keep < 1)
    throw invalid_option("keep", s.keep, "must be at least 1, because the newest checkpoint is always kept",
                         "1 or more");
  if (s.checkpoint.empty() && (s.keep > 1 || s.keep_best || !s.save_every.empty()))
    throw invalid_option(s.keep_best  ? "keep-best"
                         : s.keep > 1 ? "keep"
                                      : "save-every",
                         "", fmt::format("has no effect without {}", option_text("checkpoint")),
                         "add " + option_text("checkpoint", "FILE"));
  SaveClock(s.save_every, 0);
}

}  // namespace tutti
