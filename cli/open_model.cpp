#include "cli/open_model.h"

#include "data/files/file_kind.h"
#include "onnx/task.h"
#include "train/hf/folder.h"
#include "train/io/description.h"

namespace tutti::cli {
namespace {

using Reader = ModelDef (*)(const std::string& path);

/// What reads the model of that path; null: it is the name of a registered model, or a file of weights.
Reader reader_of(const std::string& name) {
  if (hf::is_folder(name)) return [](const std::string& path) { return hf::read_folder(path); };
  if (name.ends_with(".index.json")) return nullptr;  // index of sharded weights
  if (name.ends_with(".json")) return read_description;
  return is_onnx_file(name) ? onnx::read_definition : nullptr;
}

}  // namespace

const char* const model_files = "an ONNX file (.onnx), a description of layers (.json), or a Hugging Face folder";

bool is_model_file(const std::string& name) { return reader_of(name) != nullptr; }

bool is_onnx_file(const std::string& name) { return name.ends_with(".onnx") || file_kind(name) == FileKind::onnx; }

std::shared_ptr<const ModelDef> open_model(const std::string& name, const std::string& text, bool training) {
  if (!text.empty())
    return std::make_shared<const ModelDef>(hf::is_config(text) ? hf::read_config(text, name)
                                                                : described_model(text, name));
  if (hf::is_folder(name)) return std::make_shared<const ModelDef>(hf::read_folder(name, training));
  if (Reader read = reader_of(name)) return std::make_shared<const ModelDef>(read(name));
  return {&find_model(name), [](const ModelDef*) {}};
}

}  // namespace tutti::cli
