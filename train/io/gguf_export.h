// Models, weights and tokenizers as GGUF files, for llama.cpp.
#pragma once
#include <string>
#include <vector>

#include "core/base/export.h"
#include "data/files/gguf_write.h"
#include "data/host_tensor.h"
#include "train/io/gguf_decoder.h"

namespace tutti {

struct TUTTI_API GgufExport {
  GgufContents contents;
  std::vector<std::string> notes;  ///< what is not of the type asked for, and why
};

/// The architecture under which GGUF has such a model. Throws Error(invalid) naming the option that none has.
TUTTI_API std::string gguf_architecture(const nn::DecoderOptions& options);

/// The model with its weights, f32 by parameter. Matrices have that type, norms and biases f32; of q4_k, embeddings and
/// the output layer have q8_0, and matrices whose rows do not fit the type's blocks the next type that fits.
/// `tokenizer`: the metadata with the tokenizer. `source`: the file that the model came from, whose metadata of the
/// architecture and factors of frequencies are kept. Throws Error(invalid) for weights that the type cannot hold.
TUTTI_API GgufExport gguf_export(const GgufDecoder& model, const HostTensors& weights, const std::string& name,
                                 const GgufType& type, const GgufMetadata& tokenizer, const Gguf* source = nullptr);

}  // namespace tutti
