// The file that eval, predict and generate take a model from.
#pragma once
#include <string>

#include "cli/run_options.h"
#include "data/host_tensor.h"

namespace tutti::cli {

/// What the positional argument of such a command says.
constexpr const char* model_file_help =
    "A checkpoint; an ONNX model; a description of layers with --init; or weights (GGUF, or safetensors "
    "or .npz and the model's name behind it)";

/// A checkpoint; a model's file (ONNX, or a description in JSON); weights alone, of the model that the command line
/// names (a GGUF file: llama).
class ModelFile {
 public:
  /// Tells what the file is and gives `run`, which must outlive this, what it says. A model's name is as good where
  /// --init names its weights, as in `tutti train`. Throws Error(invalid).
  ModelFile(std::string path, RunOptions& run);
  const std::string& path() const { return path_; }
  /// Whether nothing but the weights is in it.
  bool weights_alone() const { return kind_ == Kind::weights; }
  /// The task of the model for such data; without `scored` an ONNX model needs no labels.
  Task task(const data::Source& set, bool scored = true) const { return run_.make_task(set, scored); }
  /// Gives the trainer what is in the file, and `more` beside weights alone. Throws Error(invalid) for a description
  /// without weights.
  void load_into(Trainer& trainer, const data::Source& set, HostTensors more = {}) const;

 private:
  enum class Kind { checkpoint, model, weights };
  std::string path_;
  RunOptions& run_;
  Kind kind_ = Kind::checkpoint;
};

}  // namespace tutti::cli
