// What a model file is, by its first bytes.
#pragma once
#include <string>

#include "core/base/export.h"
#include "core/base/status.h"

namespace tutti {

enum class FileKind {
  safetensors,
  gguf,
  npz,
  onnx,
  torch,   ///< torch.save(): a zip archive with a pickle
  pickle,  ///< Python's pickle, as older versions of torch.save() and scikit-learn write
  json,
  hdf5,  ///< Keras
  zip,   ///< another archive
  npy,
  folder,
  other,  ///< none of these, too short, or not readable
};

/// Reads only the first bytes, and the directory of a zip archive.
TUTTI_API FileKind file_kind(const std::string& path);
/// The error for a file of that kind where `wanted` ("a safetensors file") is read: what it is, and the command that
/// converts or reads it.
TUTTI_API Error foreign_file(const std::string& path, FileKind kind, const std::string& wanted);
/// The weights in a folder as Hugging Face writes them: its model.safetensors, model.safetensors.index.json, or only
/// file of weights. Throws Error(invalid) that lists its files if there is none or more than one.
TUTTI_API std::string weights_in_folder(const std::string& folder);

}  // namespace tutti
