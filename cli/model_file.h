// The file that eval, predict and generate take a model from.
#pragma once
#include <string>

#include "cli/run_options.h"
#include "data/host_tensor.h"

namespace tutti::cli {

/// What the positional argument of such a command says.
constexpr const char* model_file_help =
    "A checkpoint; an ONNX model; or weights (GGUF, or safetensors and the model's name behind it)";

/// A checkpoint; an ONNX model; weights alone, of the model that the command line names (a GGUF file: llama).
class ModelFile {
 public:
  /// Tells what the file is and gives `run` what it says. A model's name is as good where --init names its weights, as
  /// in `tutti train`. Throws Error(invalid).
  ModelFile(std::string path, RunOptions& run);
  const std::string& path() const { return path_; }
  /// Whether nothing but the weights is in it.
  bool weights_alone() const { return kind_ == Kind::weights; }
  /// The task of the model for such data; without `scored` an ONNX model needs no labels.
  Task task(const RunOptions& run, const data::Source& set, bool scored = true) const;
  /// Gives the trainer what is in the file, and `more` beside weights alone.
  void load_into(Trainer& trainer, HostTensors more = {}) const;

 private:
  enum class Kind { checkpoint, onnx, weights };
  std::string path_;
  Kind kind_;
  bool quantised_ = false;
};

}  // namespace tutti::cli
