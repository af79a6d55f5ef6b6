// The model `llama` from GGUF files: what it is made of, and its weights under our names.
#pragma once
#include <functional>
#include <string>

#include "core/base/export.h"
#include "data/files/checkpoint.h"
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

/// Calls f(name, tensor) for each weight, one in memory at a time: names of the model's parameters
/// ("model.layers.0.self_attn.q_proj.weight"), f32, [outputs, inputs]. The rows of queries and keys lie in these files
/// so that rotary pairs are neighbours; here they are as halves, as the model rotates them. Checks as llama_facts().
TUTTI_API void each_llama_weight(const Gguf& file,
                                 const std::function<void(const std::string& name, HostTensor weight)>& f);

/// All of them as a checkpoint's tensors. It takes 4 bytes per parameter.
TUTTI_API Checkpoint llama_weights(const Gguf& file);

}  // namespace tutti
