#include "cli/model_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/open_model.h"
#include "core/base/option_text.h"
#include "data/files/checkpoint.h"
#include "data/files/file_kind.h"
#include "train/hf/beside.h"
#include "train/hf/folder.h"

namespace tutti::cli {
namespace {

/// A safetensors file is a checkpoint if it contains a run's states or options.
bool is_checkpoint(const std::string& path) {
  for (const char* other : {".gguf", ".npz", ".index.json"})
    if (path.ends_with(other)) return false;
  CheckpointHeader header = read_checkpoint_header(path);
  return header.metadata.contains("run") ||
         std::ranges::any_of(header.entries, [](const CheckpointEntry& e) { return e.name == "seed"; });
}

bool is_model(const std::string& name) {
  return std::ranges::any_of(all_models(), [&](const ModelDef* m) { return m->name == name; });
}

}  // namespace

ModelFile::ModelFile(std::string path, RunOptions& run) : path_(std::move(path)), run_(run) {
  if (is_model(path_) && run.model.empty() && !run.weights_file().empty()) {
    run.model = path_;
    path_ = run.weights_file();
  }
  if (!is_model_file(path_) && file_kind(path_) == FileKind::folder) path_ = weights_in_folder(path_);
  if (is_model_file(path_)) {
    if (run.named("model"))
      throw invalid(fmt::format("two models given: '{}' and '{}'", path_, run.model), "give only one");
    kind_ = Kind::model;
    run.model = path_;
    return;
  }
  if (is_checkpoint(path_)) {
    run.restore(path_);
    return;
  }
  kind_ = Kind::weights;
  if (path_.ends_with(".gguf") && run.model.empty()) run.model = "llama";
  if (run.model.empty())
    throw invalid(fmt::format("{}: the file has no metadata of a training run", path_),
                  "give the model and its options after the file: gpt --size gpt2");
  if (run.definition().weights)
    throw invalid(fmt::format("weights file {}: the model {} already contains its weights", path_, run.model),
                  "give only the model, without the weights file");
  if (!run.weights_file().empty() && run.weights_file() != path_)
    throw invalid_option("init", run.init, fmt::format("the weights are already given by {}", path_), "omit --init");
  // Must not look like the name of an init scheme.
  run.init = path_.find_first_of("./") == std::string::npos ? "./" + path_ : path_;
}

bool ModelFile::of_folder() const { return kind_ == Kind::model && hf::is_folder(path_); }

void ModelFile::load_into(Trainer& trainer, const data::Source& set, HostTensors more) const {
  if (kind_ == Kind::checkpoint) return trainer.load(path_);
  if (kind_ == Kind::model) {
    if (!run_.definition().weights && run_.weights_file().empty())
      throw invalid(fmt::format("{} describes only layers, not their weights", path_),
                    "give a checkpoint of it, or --init with a file of weights");
    if (more.empty()) return run_.start(trainer, set);
    HostTensors all = run_.definition().weights(run_.model_options(), set);
    all.merge(more);
    return trainer.start_from(std::move(all), path_);
  }
  hf::expect_config_of(path_, run_.model, task(set), set, "--data " + run_.data);
  HostTensors weights = run_.weights(path_);
  weights.merge(more);
  trainer.start_from(std::move(weights), path_);
}

}  // namespace tutti::cli
