#include "cli/model_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/files/checkpoint.h"
#include "onnx/task.h"
#include "train/weights.h"

namespace tutti::cli {
namespace {

/// A run's own states or its options make a checkpoint of a safetensors file.
bool is_checkpoint(const std::string& path) {
  CheckpointHeader header = read_checkpoint_header(path);
  return header.metadata.contains("run") ||
         std::ranges::any_of(header.entries, [](const CheckpointEntry& e) { return e.name == "seed"; });
}

bool is_model(const std::string& name) {
  return std::ranges::any_of(all_models(), [&](const ModelDef* m) { return m->name == name; });
}

}  // namespace

ModelFile::ModelFile(std::string path, RunOptions& run) : path_(std::move(path)) {
  if (is_model(path_) && run.model.empty() && !run.weights_file().empty()) {
    run.model = path_;
    path_ = run.weights_file();
  }
  if (path_.ends_with(".onnx")) {
    kind_ = Kind::onnx;
    run.model = path_;
    run.onnx_model();
    return;
  }
  bool gguf = path_.ends_with(".gguf");
  kind_ = !gguf && !path_.ends_with(".index.json") && is_checkpoint(path_) ? Kind::checkpoint : Kind::weights;
  if (kind_ == Kind::checkpoint) {
    run.recall(path_);
    if (run.is_onnx()) run.onnx_model();
    return;
  }
  if (gguf && run.model.empty()) run.model = "llama";
  if (run.model.empty())
    throw invalid(fmt::format("{}: does not say what run it comes from", path_),
                  "name the model and its options behind the file: gpt --size gpt2");
  if (run.is_onnx()) throw invalid(fmt::format("{}: {} brings its own weights", path_, run.model), "name it alone");
  if (!run.weights_file().empty() && run.weights_file() != path_)
    throw invalid(fmt::format("--init {}: the weights are those of {}", run.init, path_), "leave --init out");
  quantised_ = !run.quantize.empty();
  run.init = path_.find_first_of("./") == std::string::npos ? "./" + path_ : path_;  // it is no scheme's name
}

Task ModelFile::task(const RunOptions& run, const data::Source& set, bool scored) const {
  if (kind_ == Kind::onnx && !scored) return onnx::task(run.onnx_model(), {.loss = "", .trainable = false});
  return run.make_task(set, kind_ != Kind::onnx);
}

void ModelFile::load_into(Trainer& trainer, HostTensors more) const {
  if (kind_ == Kind::checkpoint) trainer.load(path_);
  if (kind_ != Kind::weights) return;
  HostTensors weights = read_weights(path_, quantised_);
  weights.merge(more);
  trainer.start_from(std::move(weights), path_);
}

}  // namespace tutti::cli
