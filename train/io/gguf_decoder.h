// Decoder-only language models in GGUF files: their options, and their weights with their names in Tutti.
#pragma once
#include <functional>
#include <string>

#include "core/base/export.h"
#include "data/files/gguf.h"
#include "nn/decoder.h"

namespace tutti {

/// A model as a file describes it.
struct TUTTI_API GgufDecoder {
  std::string architecture;  ///< "llama", "qwen2", "qwen3", "gemma", "gemma2", "gemma3" or "phi3"
  nn::DecoderOptions options = {};
  int64_t context = 0;
};

/// A tensor of a file and its parameter.
struct TUTTI_API GgufWeight {
  std::string from, to;
  Shape shape;
  int64_t interleaved = 0;  ///< number of heads whose rows the file has as interleaved pairs; 0: as here
};

/// The tensors of a model, in the order of the file. Throws what `f` throws.
TUTTI_API void each_weight(const GgufDecoder& model, const std::function<void(const GgufWeight&)>& f);

/// Reads the options from the metadata and checks every tensor of the file against them. Throws Error(invalid) naming
/// file, byte and expectation for another architecture, a missing or inconsistent number, metadata of the architecture
/// that the model does not honour (experts, …), and a tensor that is missing, unknown or of another shape.
TUTTI_API GgufDecoder gguf_decoder(const Gguf& file);

/// The scale of attention scores that a file of the architecture means; 0: 1 / sqrt(head).
double gguf_score_scale(const std::string& architecture, const nn::DecoderOptions& options);

struct ModelOptions;
/// The registered model `llama` of that size, or of the file of weights that the options name. Its vocabulary is that
/// of the data unless it has its own.
TUTTI_API GgufDecoder llama_decoder(const ModelOptions& options);

/// The weights, by the names of the model's parameters ("model.layers.0.self_attn.q_proj.weight"), [outputs, inputs],
/// f32: 4 bytes per parameter. `quantised`: quantised matrices stay so, under nn::quantized_names(). For llama, GGUF
/// stores the rows of queries and keys with rotary pairs interleaved; they are reordered into halves, as the model
/// rotates them. Checks the file like gguf_decoder().
TUTTI_API HostTensors gguf_weights(const Gguf& file, bool quantised = false);

}  // namespace tutti
