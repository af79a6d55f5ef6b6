// Models that are files: what a command's MODEL may name beside a record of train/models.
#pragma once
#include <memory>
#include <string>

#include "train/model.h"

namespace tutti::cli {

/// "an ONNX file (.onnx) or a description (.json)": for help.
extern const char* const model_files;
/// Whether a model's name is the path of such a file, by its ending.
bool is_model_file(const std::string& name);
/// The record of that name, or what the file of that path says; `text` is a description that a checkpoint kept, which
/// is taken in the file's place. Throws Error(invalid).
std::shared_ptr<const ModelDef> open_model(const std::string& name, const std::string& text = {});

}  // namespace tutti::cli
