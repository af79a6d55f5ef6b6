// Hugging Face folders as models: config.json, weights, tokenizer.
#pragma once
#include <optional>
#include <string>

#include "core/base/export.h"
#include "train/io/gguf_decoder.h"
#include "train/task/model.h"

namespace tutti::hf {

/// Whether the path is a folder with a config.json that names a model_type.
TUTTI_API bool is_folder(const std::string& path);
/// Whether the text of a description is a config.json.
TUTTI_API bool is_config(const std::string& text);
/// The model of a folder, with its weights. `training`: a classifier gets the classes of the data. Throws
/// Error(invalid) naming file, key and value for a model_type, architecture or key that is not supported.
TUTTI_API ModelDef read_folder(const std::string& path, bool training = false);
/// The decoder that a config's text describes, for GGUF files; null for other models.
TUTTI_API std::optional<GgufDecoder> decoder_of(const std::string& text, const std::string& file);
/// The model of a config's text, without weights, as checkpoints keep it. `file` names it in messages.
TUTTI_API ModelDef read_config(const std::string& text, const std::string& file);

}  // namespace tutti::hf
