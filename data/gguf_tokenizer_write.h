// Tokenizers as metadata of GGUF files.
#pragma once
#include <string>
#include <vector>

#include "data/files/gguf_write.h"

namespace tutti::data {

/// The metadata "tokenizer.…" for the tokenizer of that name (see open_tokenizer()), for a model of `vocabulary`
/// tokens; tokens that the tokenizer lacks become unused ones. `notes`: what the format cannot say. Throws
/// Error(invalid) for characters outside ASCII, which the format's tokenizers cannot have as tokens alone, and for a
/// tokenizer.json that makes other tokens than they.
TUTTI_API GgufMetadata gguf_tokenizer(const std::string& name, const std::string& characters, int64_t vocabulary,
                                      std::vector<std::string>& notes);

}  // namespace tutti::data
