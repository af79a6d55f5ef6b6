// The tokenizer.json of a Hugging Face folder as metadata of a GGUF file.
#pragma once
#include <string>
#include <vector>

#include "data/files/gguf_write.h"

namespace tutti::data {

/// The metadata "tokenizer.…" for a model of `vocabulary` tokens: byte-level BPE with a pre-tokenizer of bpe_splits(),
/// or BPE with byte fallback that was made from SentencePiece. `notes`: what the format cannot say. Throws
/// Error(invalid) naming the part of tokenizer.json that makes other tokens than GGUF's tokenizers.
GgufMetadata gguf_tokenizer_of_folder(const std::string& folder, int64_t vocabulary, std::vector<std::string>& notes);

}  // namespace tutti::data
