// The model file of eval, predict and generate.
#pragma once
#include <string>

#include "cli/run_options.h"
#include "data/host_tensor.h"

namespace tutti::cli {

/// Help text of the positional argument.
constexpr const char* model_file_help =
    "A checkpoint; a Hugging Face folder; an ONNX model; a description of layers with --init; or weights (GGUF, or "
    "safetensors or .npz "
    "followed by the model's name)";

/// One of: a checkpoint; a model file (ONNX, a JSON description, or a Hugging Face folder); a weights file for the
/// model named on the command line (a GGUF file: llama).
class ModelFile {
 public:
  /// Detects the file's kind and sets the options in `run`, which must outlive this object. Also accepts a model's name
  /// if --init names its weights, as in `tutti train`. Throws Error(invalid).
  ModelFile(std::string path, RunOptions& run);
  const std::string& path() const { return path_; }
  /// Whether the file contains only weights.
  bool weights_alone() const { return kind_ == Kind::weights; }
  /// Whether it is a Hugging Face folder.
  bool of_folder() const;
  /// The model's task for the data; without `scored`, an ONNX model needs no labels.
  Task task(const data::Source& set, bool scored = true) const { return run_.make_task(set, scored); }
  /// Loads the file into the trainer; `more` adds tensors to a weights file. Throws Error(invalid) for a description
  /// without weights.
  void load_into(Trainer& trainer, const data::Source& set, HostTensors more = {}) const;

 private:
  enum class Kind { checkpoint, model, weights };
  std::string path_;
  RunOptions& run_;
  Kind kind_ = Kind::checkpoint;
};

}  // namespace tutti::cli
