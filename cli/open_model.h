// Models in files: a command's MODEL can be a file instead of a registered model.
#pragma once
#include <memory>
#include <string>

#include "train/task/model.h"

namespace tutti::cli {

/// "an ONNX file (.onnx) or a description (.json)", for help texts.
extern const char* const model_files;
/// Whether a model's name is a file path, by its extension.
bool is_model_file(const std::string& name);
/// Whether it is the path of an ONNX file, also under another name.
bool is_onnx_file(const std::string& name);
/// The registered model of that name, or the model in the file of that path. `text`: a description stored in a
/// checkpoint, used instead of the file. `training`: a classifier from a folder gets the classes of the data. Throws
/// Error(invalid).
std::shared_ptr<const ModelDef> open_model(const std::string& name, const std::string& text = {},
                                           bool training = false);

}  // namespace tutti::cli
