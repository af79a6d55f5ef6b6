// Decoder-only language models of the Llama family: one definition, whose options make Llama, Mistral, Qwen, Gemma and
// Phi-3 of it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "nn/rotary.h"

namespace tutti::nn {

struct TUTTI_API DecoderOptions {
  std::string name = "Llama";  ///< for describe()
  int64_t vocabulary = 0, layers = 0, width = 0, hidden = 0, heads = 0, kv_heads = 0;
  int64_t head = 0;  ///< size of a head; 0: width / heads
  double eps = 1e-5;
  std::string activation = "silu";  ///< of the gate: a name that nn::activation() has
  bool tied = true;                 ///< the embedding is the output layer too; else lm_head
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool fused = false;         ///< qkv_proj and gate_up_proj instead of their parts (Phi-3)
  bool head_norms = false;    ///< q_norm and k_norm over every head, before the rotation
  bool unit_norms = false;    ///< norms multiply by 1 + weight (Gemma)
  bool result_norms = false;  ///< the results of attention and MLP are normalised too (Gemma 2)
  double embedding_scale = 1;
  double score_scale = 0;               ///< of attention scores; 0: 1 / sqrt(head)
  double score_cap = 0, logit_cap = 0;  ///< cap * tanh(x / cap) of scores and logits; 0: none
  double attention_dropout = 0, residual_dropout = 0, embedding_dropout = 0;
  Rotary rotary = {};
  int64_t window = 0;                         ///< of the layers in `sliding`: tokens that a token attends to
  std::vector<bool> sliding = {};             ///< per layer; empty: none
  std::optional<Rotary> sliding_rotary = {};  ///< of these layers, if they have their own
  bool operator==(const DecoderOptions&) const = default;
};

/// Tokens [N, T] to logits [N, T, vocabulary]: pre-norm blocks of RMSNorm, rotary attention with grouped key-value
/// heads, and a gated MLP; Hugging Face's parameter names.
class TUTTI_API Decoder {
 public:
  /// Throws Error(invalid) for sizes that do not fit each other.
  explicit Decoder(DecoderOptions options);
  Value forward(Builder& b, Value tokens) const;
  std::string describe() const;

 private:
  DecoderOptions o_;
};

}  // namespace tutti::nn
