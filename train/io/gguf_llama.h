// The model `llama` from GGUF files: its hyperparameters, and its weights with their names in Tutti.
#pragma once
#include <string>

#include "core/base/export.h"
#include "data/files/gguf.h"

namespace tutti {

/// Hyperparameters of a Llama.
struct TUTTI_API LlamaFacts {
  int64_t vocabulary = 0, context = 0, layers = 0, width = 0, hidden = 0, heads = 0, kv_heads = 0;
  double rope_base = 10000, eps = 1e-5;
  bool operator==(const LlamaFacts&) const = default;
};

/// Reads the hyperparameters from the metadata and checks every tensor of the file against them. Throws Error(invalid)
/// naming file, byte and expectation for another architecture, a missing or inconsistent number, a feature that this
/// model lacks (experts, scaled rotary positions, an untied head), and a tensor that is missing, unknown or of another
/// shape.
TUTTI_API LlamaFacts llama_facts(const Gguf& file);

/// The weights, by the names of the model's parameters ("model.layers.0.self_attn.q_proj.weight"), [outputs, inputs],
/// f32: 4 bytes per parameter. `quantised`: matrices of q4_0, q4_1 and q8_0 stay quantised, under nn::QuantizedNames.
/// GGUF stores the rows of queries and keys with rotary pairs interleaved; they are reordered into halves, as the model
/// rotates them. Checks the file like llama_facts().
TUTTI_API HostTensors llama_weights(const Gguf& file, bool quantised = false);

}  // namespace tutti
