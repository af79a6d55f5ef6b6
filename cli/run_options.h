// The options that describe a run: model, data, optimizer. The same for every subcommand that builds a model, and kept
// in checkpoints so that a run can be resumed and evaluated without typing them again.
#pragma once
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "cli/command.h"
#include "data/tokenizer.h"
#include "train/run/run_option.h"
#include "train/run/trainer.h"
#include "train/run/trainer_option.h"
#include "train/task/model_option.h"

namespace tutti::cli {

/// Declares an option for each of data::data_options(), which sets its field of `open`.
void add_data_options(CLI::App& sub, data::OpenOptions& open);

struct RunOptions {
  /// The options that the library has records of. Batch 0: the model's.
  TrainerOptions trainer{.batch = 0, .augment = "none"};
  OptionTexts texts = default_texts();  ///< of those of the trainer with a parser
  RunSettings settings;
  ModelOptions model_values;  ///< but for init
  data::OpenOptions open;     ///< for reading --data
  std::string model, init = "torch", data;

  /// The texts to parse: those of --lora-alpha and its like count only with --lora, unless they were typed, and
  /// hyperparameters from a checkpoint only if the optimizer has them.
  OptionTexts effective_texts() const;
  /// The text of an option with a parser.
  const std::string& text(std::string_view option) const { return texts.find(option)->second; }
  /// Declares them on a subcommand; `trains`: also those that only `tutti train` takes.
  void add_to(CLI::App& sub, bool trains = false);
  /// Declares one option of models, runs or trainers.
  CLI::Option* add(CLI::App& sub, std::string_view name);
  /// Removes options, such as "epochs", from a subcommand on which they have no effect.
  void leave_out(CLI::App& sub, std::initializer_list<const char*> options);
  /// Hides options that affect only training but may be stored in a checkpoint. `unused`: other options without effect
  /// on the subcommand. validate() throws if one of them is given.
  void hide_training(CLI::App& sub, const std::set<std::string>& unused = {});
  /// Whether the command line names that option, such as "seed".
  bool named(const std::string& option) const {
    auto it = options_.find(option);  // a subcommand may have left it out
    return it != options_.end() && !it->second.option->empty();
  }
  /// Whether the option was given on the command line or in a run file, not restored from a checkpoint.
  bool typed(const std::string& option) const;
  /// Whether that option takes no value.
  bool is_flag(const std::string& option) const { return options_.at(option).option->get_items_expected_max() == 0; }
  /// What to remember, by option name.
  std::map<std::string, std::string> remembered() const;
  /// The options that a resumed run needs again, as on a command line: " --device cpu".
  std::string words_to_resume() const;
  int threads() const { return parse_threads(text("threads")); }
  /// Restores every option that is not on the command line from a checkpoint. Throws Error if the file has no stored
  /// options and no model was named.
  void restore(const std::string& path);

  /// Sets options that were not given to the model's defaults: data, batch, optimizer. Throws Error that names the
  /// first invalid option, before any data is read.
  void validate();
  /// The data sets of --data, or the model's default; if that is not installed, synthetic data with a message on
  /// stderr. Throws Error if more than 1 GiB is requested by a checkpoint only.
  /// `judged`: the command judges or predicts samples; data named on the command line is not divided then. `labelled`:
  /// whether it needs labels.
  data::Sources read_data(bool judged = false, bool labelled = true);
  /// Throws Error also for options that do not fit the data. `scored`: false if only predictions are needed.
  Task make_task(const data::Source& set, bool scored = true) const;
  /// The only batch size that the model accepts, if there is one.
  std::optional<int64_t> fixed_batch() const { return definition().fixed_batch; }
  /// The registered model, or the model in the file (read once). Throws Error(invalid).
  const ModelDef& definition() const;
  /// Loads initial weights into a trainer unless they are random.
  void start(Trainer& trainer, const data::Source& set) const;
  ModelOptions model_options() const;
  /// The weights of a file in the format of --quantize.
  HostTensors weights(const std::string& file) const;
  /// The forms of the quantized matrices that a run with --quantize file loads from the checkpoint, or from --init, for
  /// planning; empty for other runs. Reads the whole file.
  std::map<std::string, QuantForm> weight_forms(const std::string& checkpoint = {}) const;
  /// The tokenizer of the checkpoint's text data.
  std::unique_ptr<data::Tokenizer> open_tokenizer() const;
  /// The weights file of --init; "" if --init is a random initialization.
  std::string weights_file() const;
  int64_t steps_per_epoch(const data::Source& set) const;
  /// Total steps of a run from its beginning. Throws Error(invalid) for a batch larger than the set, and for too many.
  int64_t total_steps(const data::Source& set) const;
  /// `total_steps`: of the run, for schedules; 0 where there is none.
  TrainerOptions trainer_options(int64_t total_steps = 0) const;
  /// Throws Error(invalid) if the model has fewer blocks than --recompute names; `verbose`: prints to stderr if "all"
  /// finds none.
  void check_recompute(const data::Source& set, bool verbose) const;
  /// Chooses what to recompute so that the run fits into --memory-budget; `verbose`: prints the result to stderr.
  /// The options must have the forms of weights.
  void fit(TrainerOptions& options, const Device& device, const Task& task, const data::Sources& data, bool evaluates,
           bool verbose) const;
  /// Options for commands that do not train.
  TrainerOptions inference_options() const;
  /// Adds the result of --fallback to a JSON document as "fallback"; nothing without that option.
  void report_fallback(const Trainer& trainer, nlohmann::ordered_json& document) const;
  /// The same as one line of text; "" without --fallback.
  std::string fallback_text(const Trainer& trainer) const;

 private:
  /// An option of the subcommand.
  struct Declared {
    CLI::Option* option = nullptr;
    OptionScope scope = OptionScope::run;
    std::function<std::string(const RunOptions&)> text;  ///< its value
    std::string default_text = {};
  };
  CLI::Option* declare(CLI::Option* option, Declared as);
  template <class T>
  CLI::Option* add_record(CLI::App& sub, const OptionRecord<T>& option, T RunOptions::*settings);
  CLI::Option* add_record(CLI::App& sub, const ModelOption& option);
  template <class T>
  void add_records(CLI::App& sub, std::span<const OptionRecord<T>> records, T RunOptions::*settings, bool trains);
  void add_model_options(CLI::App& sub, std::string_view group);
  std::string initial_vocabulary() const;
  data::OpenOptions open_options(bool judged, bool labelled) const;
  void complete();
  void refuse_unused() const;
  bool takes_effect(const std::string& option, const std::string& value) const;
  void validate_each() const;
  [[noreturn]] void rethrow(const Error& e) const;
  std::map<std::string, Declared> options_;
  mutable std::shared_ptr<const ModelDef> definition_;  // that of `defined_`
  mutable std::string defined_;
  std::string description_;                 // a model's text that the checkpoint kept
  std::set<std::string> restored_options_;  // options that nobody typed
  std::string restored_from_;               // the file that some of them come from
  std::set<std::string> unused_;            // options without effect on the subcommand
  std::string subcommand_;
  bool data_restored_ = false;  // --data does
  bool data_chosen_ = false;    // the model chose --data
  std::string vocabulary_;      // Source::vocabulary
};

}  // namespace tutti::cli
