// The options that describe a run: model, data, optimizer. The same for every subcommand that builds a model, and kept
// in checkpoints so that a run can be resumed and evaluated without typing them again.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "cli/command.h"
#include "data/tokenizer.h"
#include "train/model.h"
#include "train/trainer.h"
#include "train/trainer_option.h"

namespace tutti::cli {

struct RunOptions {
  /// The options that the trainer has records of. Batch 0: the model's.
  TrainerOptions trainer{.batch = 0, .augment = "none"};
  std::string model, size, layers, activation = "relu", init = "torch", data;
  std::string tokenizer = "chars";
  double dropout = 0;
  int64_t context = 0, epochs = 1, steps = 0;
  std::string recompute = "0";  ///< "all", or how many of the model's blocks
  uint64_t memory_budget = 0;   ///< bytes; 0: none
  std::string normalise = "none";
  std::string schedule = "constant", no_decay, freeze;
  int64_t lora = 0;
  double lora_alpha = 0;
  std::string quantize;  ///< "", int8 or int4
  std::string lora_targets = "q_proj,k_proj,v_proj,o_proj";
  std::string loss;  ///< of a model from a file; "": the file's
  std::string optimizer;
  std::map<std::string, std::optional<double>> hyperparameters;  ///< by option, "lr": what some optimizer has
  std::string precision = "f32";
  std::string device = "auto", fallback;
  int threads = 0;

  /// Declares them on a subcommand. All but --device, --fallback, --threads, --workers and --prefetch are remembered in
  /// checkpoints.
  void add_to(CLI::App& sub);
  /// A subcommand's own option that checkpoints remember as well.
  CLI::Option* remember(CLI::Option* option);
  /// Takes an option, such as "epochs", from a subcommand where it would have no effect.
  void leave_out(CLI::App& sub, const std::string& option);
  /// Takes --workers and --prefetch from a subcommand that reads no data batch by batch.
  void leave_out_loading(CLI::App& sub);
  /// Hides what concerns training alone: a checkpoint may hold it. `unused`: other options without effect on the
  /// subcommand. validate() throws where one of all these is typed.
  void hide_training(CLI::App& sub, const std::set<std::string>& unused = {});
  /// Whether the command line names that option, such as "seed".
  bool named(const std::string& option) const {
    auto it = options_.find(option);  // a subcommand may have left it out
    return it != options_.end() && !it->second->empty();
  }
  /// Whether somebody typed it, on the command line or in a run file: it comes from no checkpoint.
  bool typed(const std::string& option) const;
  /// Whether that option takes no value.
  bool is_flag(const std::string& option) const { return options_.at(option)->get_items_expected_max() == 0; }
  /// What to remember, by option name.
  std::map<std::string, std::string> remembered() const;
  /// Takes what a checkpoint remembered for every option that the command line does not name. Throws Error when the
  /// file has no such record and no model was named.
  void restore(const std::string& path);

  /// Fills in from the model what was not named: data, batch, optimizer. Throws Error naming the first option that does
  /// not fit, before any data is read.
  void validate();
  /// The data sets that --data names, or the model's own: synthetic, with a line on stderr, where those are not
  /// installed. Throws Error where a checkpoint alone asks for more than 1 GiB.
  data::Sources read_data();
  /// Throws Error also for what does not fit the data.
  /// `scored`: else only its predictions are asked for.
  Task make_task(const data::Source& set, bool scored = true) const;
  /// The only batch that the model takes, where there is one.
  std::optional<int64_t> fixed_batch() const { return definition().fixed_batch; }
  /// The model's record, or what its file says (read once). Throws Error(invalid).
  const ModelDef& definition() const;
  /// Gives a trainer the weights that training starts from, where they are not drawn.
  void start(Trainer& trainer, const data::Source& set) const;
  ModelOptions model_options() const;
  Optimizer make_optimizer() const;
  /// The weights of that file in the form that --quantize asks for.
  HostTensors weights(const std::string& file) const;
  /// What --lora and its options come to; nothing without them.
  std::optional<nn::Lora> adapters() const;
  /// What the checkpoint's texts were cut into tokens by, and the columns that a model of it is made for.
  std::unique_ptr<data::Tokenizer> open_tokenizer() const;
  /// The file of weights that --init names; "" where it names numbers to be drawn.
  std::string weights_file() const;
  /// `total_steps`: of the run, for schedules; 0 where there is none.
  TrainerOptions trainer_options(int64_t total_steps = 0) const;
  /// Says on stderr if --recompute all finds no blocks in the model.
  void report_recompute(const data::Source& set) const;
  /// Chooses what to recompute so that the run fits into --memory-budget; `told`: what came of it is said on stderr.
  void fit(TrainerOptions& options, const Device& device, const Task& task, const data::Sources& data, bool evaluates,
           bool told) const;
  /// Where nothing is trained.
  TrainerOptions inference_options() const;
  /// Adds what a --fallback came to, "fallback", to a JSON document; nothing where none was asked for.
  void report_fallback(const Trainer& trainer, nlohmann::ordered_json& document) const;
  /// The same in words, a line; "" where none was asked for.
  std::string fallback_text(const Trainer& trainer) const;

 private:
  void declare(CLI::Option* option, const char* group);
  void add_model(CLI::App& sub);
  void add_data(CLI::App& sub);
  void add_trainer(CLI::App& sub);
  void add_training(CLI::App& sub);
  void add_updates(CLI::App& sub);  ///< how gradients become updates
  void add_adapters(CLI::App& sub);
  void add_device(CLI::App& sub);
  void add_hyperparameters(CLI::App& sub, const char* group);
  /// Whether a hyperparameter is to be another than the optimizer's own.
  bool given(const std::string& option) const;
  void complete();
  void refuse_unused() const;
  bool takes_effect(const std::string& option, const std::string& value) const;
  void validate_each() const;
  [[noreturn]] void rethrow(const Error& e) const;
  std::map<std::string, CLI::Option*> options_;
  std::vector<std::pair<const TrainerOption*, CLI::Option*>> machine_;  // those that checkpoints do not store
  mutable std::shared_ptr<const ModelDef> definition_;                  // that of `defined_`
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
