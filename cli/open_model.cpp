#include "cli/open_model.h"

#include "data/files/file_kind.h"
#include "onnx/task.h"
#include "train/io/description.h"

namespace tutti::cli {
namespace {

struct Form {
  const char* ending;
  ModelDef (*read)(const std::string& path);
};
const Form forms[] = {{".onnx", onnx::read_definition}, {".json", read_description}};

const Form* form_of(const std::string& name) {
  if (name.ends_with(".index.json")) return nullptr;  // index of sharded weights
  for (const Form& f : forms)
    if (name.ends_with(f.ending)) return &f;
  return file_kind(name) == FileKind::onnx ? &forms[0] : nullptr;  // under another name
}

}  // namespace

const char* const model_files = "an ONNX file (.onnx) or a description of layers (.json)";

bool is_model_file(const std::string& name) { return form_of(name) != nullptr; }

bool is_onnx_file(const std::string& name) { return form_of(name) == &forms[0]; }

std::shared_ptr<const ModelDef> open_model(const std::string& name, const std::string& text) {
  if (!text.empty()) return std::make_shared<const ModelDef>(described_model(text, name));
  if (const Form* f = form_of(name)) return std::make_shared<const ModelDef>(f->read(name));
  return {&find_model(name), [](const ModelDef*) {}};
}

}  // namespace tutti::cli
