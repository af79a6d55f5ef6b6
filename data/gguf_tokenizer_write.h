// Tokenizers as metadata of GGUF files.
#pragma once
#include <string>

#include "data/files/gguf_write.h"

namespace tutti::data {

/// The metadata "tokenizer.…" for the tokenizer of that name (see open_tokenizer()), for a model of `vocabulary`
/// tokens; tokens that the tokenizer lacks become unused ones. Throws Error(invalid) for characters outside ASCII,
/// which the format's tokenizers cannot have as tokens alone.
TUTTI_API GgufMetadata gguf_tokenizer(const std::string& name, const std::string& characters, int64_t vocabulary);

}  // namespace tutti::data
