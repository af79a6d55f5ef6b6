// The models that commands, checks and benchmarks know by name. Each is one file of train/models.
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
#include "train/optimizer.h"
#include "train/sampler.h"
#include "train/task.h"

namespace tutti {

/// What the options of a command say about a model; a model takes what concerns it.
struct TUTTI_API ModelOptions {
  std::string size = {};    ///< one of the model's; "": its first
  std::string layers = {};  ///< sizes, input first; "": the model's own
  nn::NetOptions net = {};
  int64_t context = 0;                ///< tokens that a language model sees; 0: its size's
  std::string data = "the data set";  ///< what messages call it
  std::string loss = {};              ///< of a model from a file; "": the file's own, or cross_entropy
  bool scored = true;                 ///< else its predictions alone are asked for: a file's model needs no labels
  std::string weights = {};           ///< a GGUF file that says what the model is made of; "": its size does
};

struct TUTTI_API ModelSize {
  std::string name;  ///< "tiny", "default", "gpt2"
  std::string doc;   ///< "6 layers, 6 heads, width 384"
  int64_t batch = 64, eval_batch = 256;
  double lr = 0;       ///< 0: the optimizer's own
  bool fixed = false;  ///< of this size the model takes no option
};

/// A model that commands can train: a record of train/models, or what a file says.
struct TUTTI_API ModelDef {
  std::string name;
  std::string doc;               ///< for help: what it is made of
  std::vector<ModelSize> sizes;  ///< the default first; "tiny" is what tests run beside the float64 reference
  /// For data with those columns. Throws Error(invalid) for options and data that do not fit.
  std::function<Task(const ModelOptions& options, const data::Source& train)> build;
  /// A spec of data that needs no file, of the model's kind and size, of that many training samples.
  std::function<std::string(const ModelOptions& options, int64_t samples)> synthetic;
  std::string data = {};           ///< spec that training takes unless told otherwise; "": synthetic data
  std::string optimizer = "adam";  ///< and this optimizer
  /// The options that have an effect on it, of "layers", "activation", "dropout", "init" (a scheme) and "loss"; all
  /// others are refused. A model with `context` takes "context" as well.
  std::set<std::string> takes = {};
  std::function<int64_t(const ModelOptions&)> context = {};  ///< tokens per sample, where it reads text
  /// Columns that its task draws where the data have none such: inputs of an exported model.
  std::vector<data::Column> (*drawn)(const ModelOptions& options, const data::Source& train) = nullptr;
  /// How it draws images like those data, in that many steps, 0: its own number. Null: it does not. Throws
  /// Error(invalid) for a number of steps it cannot do.
  std::function<Sampler(const ModelOptions& options, const data::Source& train, int64_t steps)> sampler = {};
  /// The weights that a file brings, by the names of the model's states. Null: they are drawn.
  std::function<HostTensors(const ModelOptions& options, const data::Source& train)> weights = {};
  std::optional<int64_t> fixed_batch = {};  ///< the only batch that it takes, where there is one
  std::string text = {};                    ///< a file's own, which checkpoints keep; "": it is no such file

  /// The size of that name, the default for "". Throws Error(invalid) that lists the sizes.
  const ModelSize& size(const std::string& name) const;
  /// Whether that option has an effect on the model of that size.
  bool takes_option(const std::string& option, const std::string& size) const {
    return takes.contains(option) && !this->size(size).fixed;
  }
  /// Throws Error(invalid) for the first option that is set to another value than the default and has no effect.
  void check(const ModelOptions& options) const;
  /// What `build` gives for options that pass `check`.
  Task task(const ModelOptions& options, const data::Source& train) const;
};

/// In the order of their names.
TUTTI_API std::span<const ModelDef* const> all_models();
/// Throws Error(invalid) that lists the names.
TUTTI_API const ModelDef& find_model(const std::string& name);

}  // namespace tutti
