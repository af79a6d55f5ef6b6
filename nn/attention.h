// Attention as a module.
#pragma once
#include "core/base/export.h"
#include "graph/ops/attention.h"
#include "nn/module.h"

namespace tutti::nn {

/// PyTorch's MultiheadAttention with batch_first, as self-attention (Vaswani et al., "Attention is all you need",
/// 2017): x [N, T, E] to [N, T, E]. Parameters in_proj_weight [3 E, E] and in_proj_bias (queries, keys and values
/// stacked), out_proj.weight [E, E] and out_proj.bias.
class TUTTI_API MultiheadAttention : public Module {
 public:
  struct Options {
    bool causal = false;  ///< token i attends to tokens 0 to i
    double dropout = 0;   ///< of the attention probabilities, in training
    bool bias = true;
  };
  explicit MultiheadAttention(int64_t heads) : MultiheadAttention(heads, Options{}) {}
  /// Throws Error unless heads >= 1 and dropout lies in [0, 1).
  MultiheadAttention(int64_t heads, Options options);
  /// Throws Error unless E is a multiple of the number of heads.
  Value forward(Builder& b, Value x) const override;
  std::string describe() const override;

 private:
  int64_t heads_;
  Options options_;
};

/// What some decoders add to causal attention.
struct TUTTI_API CausalOptions {
  int64_t window = 0;  ///< a token attends to this many tokens, itself included; 0: all
  double cap = 0;      ///< scores become cap * tanh(score / cap); 0: unchanged
};
/// Causal self-attention by tutti::attention: q [N, H, T, D], k and v [N, Hkv, T, D]. If b decodes (T = 1), attends to
/// the keys and values of all tokens so far, which are cached in "keys" and "values" of the path.
TUTTI_API Value causal_attention(Builder& b, Value q, Value k, Value v, AttentionOptions o = {},
                                 const CausalOptions& causal = {});

}  // namespace tutti::nn
