#include "train/run/run_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "core/base/option_text.h"
#include "train/run/goal.h"
#include "train/run/saver.h"

namespace tutti {
namespace {

std::vector<RunOption> records_of_length_and_place() {
  using S = RunSettings;
  using enum OptionScope;
  return {
      {.name = "epochs",
       .group = "Training",
       .field = &S::epochs,
       .doc = "Number of passes over the training set; a resumed run counts earlier ones",
       .scope = training,
       .low = 0,
       .example = "5"},
      {.name = "steps",
       .group = "Training",
       .field = &S::steps,
       .doc = "Stop after N steps in total (0: after the epochs)",
       .scope = training,
       .low = 0,
       .example = "1000"},
      {.name = "memory-budget",
       .group = "Training",
       .field = &S::memory_budget,
       .doc = "Limit on the run's device memory (2GiB, 1.5GiB, 800MiB): recomputes as few blocks as needed",
       .scope = training,
       .form = OptionForm::bytes,
       .keyword = false},
      {.name = "device",
       .group = "Device",
       .field = &S::device,
       .doc = "auto, an id (vulkan:1), a plugin (opencl), a kind (cpu, gpu), or a pattern (\"NVIDIA*\"); for `tutti "
              "train` also fastest: by timing steps of the model",
       .scope = place,
       .keyword = false,
       .example = "gpu"},
  };
}

std::vector<RunOption> records_of_results() {
  using S = RunSettings;
  using enum OptionScope;
  return {
      {.name = "checkpoint",
       .group = "Files",
       .field = &S::checkpoint,
       .doc = "Save a checkpoint here (safetensors) after every epoch and when interrupted",
       .scope = once,
       .example = "run.safetensors"},
      {.name = "log-dir",
       .group = "Files",
       .field = &S::log_dir,
       .doc = "Write the training curves to this folder: TensorBoard events, steps.csv and epochs.csv",
       .scope = once,
       .example = "log"},
      {.name = "save-every",
       .group = "Files",
       .field = &S::save_every,
       .doc = "Also save within an epoch: every N steps (500), or after this much time (90s, 10m, 2h)",
       .scope = train},
      {.name = "keep",
       .group = "Files",
       .field = &S::keep,
       .doc = "Number of checkpoints to keep: FILE and the ones before it, as NAME.step-N.EXT",
       .scope = train,
       .low = 1},
      {.name = "keep-best",
       .group = "Files",
       .field = &S::keep_best,
       .doc = "Also keep the checkpoint with the lowest test loss, as NAME.best.EXT",
       .scope = train},
      {.name = "patience",
       .group = "Training",
       .field = &S::patience,
       .doc = "Early stopping: stop after N epochs without a lower test loss (0: off)",
       .scope = train,
       .low = 0},
      {.name = "target",
       .group = "Training",
       .field = &S::target,
       .doc = "Stop after the epoch in which the test set reaches a value: accuracy=0.97, loss=0.1, or METRIC<=VALUE "
              "and METRIC>=VALUE",
       .scope = train},
      {.name = "no-eval",
       .group = "Training",
       .field = &S::no_eval,
       .doc = "Do not evaluate on the test set",
       .scope = once,
       .keyword = false,
       .python = "validation=None"},
  };
}

}  // namespace

std::span<const RunOption> run_options() {
  static const auto& all = *new std::vector<RunOption>([] {  // other threads' messages may need it at exit
    std::vector<RunOption> joined = records_of_length_and_place();
    std::ranges::move(records_of_results(), std::back_inserter(joined));
    return joined;
  }());
  return all;
}

void expect_evaluation(const RunSettings& s, std::string_view option, std::string_view value) {
  if (s.no_eval)
    throw invalid_option(option, value,
                         fmt::format("needs the test loss, which {} does not compute", option_text("no-eval")),
                         fmt::format("omit {} or {}", option_text(option), option_text("no-eval")));
}

void check(const RunSettings& s) {
  check(run_options(), s);
  if (s.keep_best) expect_evaluation(s, "keep-best", "");
  if (s.patience > 0) expect_evaluation(s, "patience", std::to_string(s.patience));
  if (!s.target.empty()) expect_evaluation(s, "target", s.target);
  Goal::parse(s.target);
  if (s.checkpoint.empty() && (s.keep > 1 || s.keep_best || !s.save_every.empty()))
    throw invalid_option(s.keep_best  ? "keep-best"
                         : s.keep > 1 ? "keep"
                                      : "save-every",
                         "", fmt::format("has no effect without {}", option_text("checkpoint")),
                         "add " + option_text("checkpoint", "FILE"));
  SaveClock(s.save_every, 0);
}

}  // namespace tutti
