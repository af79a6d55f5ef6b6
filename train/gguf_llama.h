// The model `llama` from GGUF files: what it is made of, and its weights under our names.
#pragma once
#include <string>

#include "core/base/export.h"
#include "data/files/gguf.h"

namespace tutti {

/// What a Llama is made of.
struct TUTTI_API LlamaFacts {
  int64_t vocabulary = 0, context = 0, layers = 0, width = 0, hidden = 0, heads = 0, kv_heads = 0;
  double rope_base = 10000, eps = 1e-5;
  bool operator==(const LlamaFacts&) const = default;
};

/// Reads them from the metadata and holds every tensor of the file against them. Throws Error(invalid) naming file,
/// byte and expectation: another architecture, a number that is missing or fits no other, what this model does not have
/// (experts, scaled rotary positions, an untied head), a tensor that is missing, of another shape or not known.
TUTTI_API LlamaFacts llama_facts(const Gguf& file);

/// Its weights by the names of the model's parameters ("model.layers.0.self_attn.q_proj.weight"), [outputs, inputs],
/// f32: 4 bytes per parameter; `quantised`: matrices of q4_0, q4_1 and q8_0 as they are, under nn::QuantizedNames. The
/// rows of queries and keys lie in these files so that rotary pairs are neighbours; here they are as halves, as the
/// model rotates them. Checks as llama_facts().
TUTTI_API HostTensors llama_weights(const Gguf& file, bool quantised = false);

}  // namespace tutti
