// The registry of models for commands, tests and benchmarks. Each model is one file in train/models.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "data/dataset.h"
#include "nn/nets.h"
#include "train/task/sampler.h"
#include "train/task/task.h"

namespace tutti {

/// Model options from the command line. Each model uses those that apply to it.
struct TUTTI_API ModelOptions {
  std::string size = {};    ///< name of one of the model's sizes; "": the first
  std::string layers = {};  ///< layer sizes, input first; "": the model's default
  nn::NetOptions net = {};
  int64_t context = 0;                ///< context length of a language model in tokens; 0: the default of the size
  std::string data = "the data set";  ///< name of the data set in messages
  std::string loss = {};              ///< loss of a model from a file; "": the one in the file, or cross_entropy
  bool scored = true;                 ///< false: only predictions are needed, so a model from a file needs no labels
  std::string weights = {};           ///< a GGUF file with the model's hyperparameters; "": those of the size
};

struct TUTTI_API ModelSize {
  std::string name;  ///< "tiny", "default", "gpt2"
  std::string doc;   ///< "6 layers, 6 heads, width 384"
  int64_t batch = 64, eval_batch = 256;
  double lr = 0;                      ///< 0: the optimizer's default
  bool fixed = false;                 ///< this size accepts no options
  int64_t epochs = 1;                 ///< default length of a run
  std::string schedule = "constant";  ///< default schedule of the learning rate
  double dropout = 0;                 ///< default of the option dropout
};

/// A model that commands can train: a record in train/models, or a description file.
struct TUTTI_API ModelDef {
  std::string name;
  std::string doc;               ///< architecture, for help texts
  std::vector<ModelSize> sizes;  ///< the default first; tests compare "tiny" with the float64 reference
  /// Builds the task for data with these columns. Throws Error(invalid) for options and data that do not fit.
  std::function<Task(const ModelOptions& options, const data::Source& train)> build;
  /// A spec of synthetic data (no file needed) for the model and its size, with `samples` training samples.
  std::function<std::string(const ModelOptions& options, int64_t samples)> synthetic;
  std::string data = {};           ///< default data spec; "": synthetic data
  std::string optimizer = "adam";  ///< default optimizer
  /// The options of scope `listed` that it accepts (see model_option.h); others are refused.
  std::set<std::string> takes = {};
  std::function<int64_t(const ModelOptions&)> context = {};  ///< tokens per sample, if it reads text
  /// Columns that the task samples randomly if the data lack them: inputs of an exported model.
  std::vector<data::Column> (*drawn)(const ModelOptions& options, const data::Source& train) = nullptr;
  /// A sampler of images like the data, with `steps` steps (0: the model's default). Null: the model cannot sample.
  /// Throws Error(invalid) for an unsupported number of steps.
  std::function<Sampler(const ModelOptions& options, const data::Source& train, int64_t steps)> sampler = {};
  /// Weights from a file, by state name. Null: random initialization.
  std::function<HostTensors(const ModelOptions& options, const data::Source& train)> weights = {};
  std::optional<int64_t> fixed_batch = {};  ///< the only batch size that it accepts, if there is one
  std::string text = {};  ///< the description file's text, which checkpoints store; "": not from a file

  /// The size of that name; "": the default. Throws Error(invalid) that lists the sizes.
  const ModelSize& size(const std::string& name) const;
  /// Throws Error(invalid) for the first option with a non-default value that the model does not accept.
  void check(const ModelOptions& options) const;
  /// Checks the options and builds the task.
  Task task(const ModelOptions& options, const data::Source& train) const;
};

/// All models, ordered by name.
TUTTI_API std::span<const ModelDef* const> all_models();
/// Throws Error(invalid) that lists all names if there is no such model.
TUTTI_API const ModelDef& find_model(const std::string& name);

}  // namespace tutti
