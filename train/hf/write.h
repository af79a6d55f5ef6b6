// Writes a model as a Hugging Face folder, which `from_pretrained` opens.
#pragma once
#include <string>
#include <vector>

#include "core/base/export.h"
#include "data/host_tensor.h"
#include "train/task/model.h"

namespace tutti::hf {

struct TUTTI_API FolderOptions {
  std::string source = {};     ///< folder from which the model came; its tokenizer and generation files are copied
  std::string tokenizer = {};  ///< the run's option, for models that come from no folder
  std::vector<std::string> classes = {};  ///< names of the classes, if known
};

/// Whether write_folder() can describe the model.
TUTTI_API bool has_config(const ModelDef& def);
/// Writes config.json, model.safetensors and the tokenizer's files. Returns what it left out, as sentences. Throws
/// Error(invalid) for a model without a counterpart in transformers.
TUTTI_API std::vector<std::string> write_folder(const std::string& folder, const ModelDef& def,
                                                const ModelOptions& options, const data::Source& set,
                                                HostTensors weights, const FolderOptions& how = {});

}  // namespace tutti::hf
