// Transformer layers as modules.
#pragma once
#include <string>

#include "core/base/export.h"
#include "nn/module.h"

namespace tutti::nn {

/// PyTorch's TransformerEncoderLayer with batch_first: x [N, T, E] to [N, T, E]. Modules self_attn, linear1, linear2,
/// norm1 and norm2.
class TUTTI_API TransformerEncoderLayer : public Module {
 public:
  struct Options {
    int64_t feedforward = 2048;
    double dropout = 0.1;  ///< of the attention, after the activation, and before both residual sums
    std::string activation = "relu";
    double eps = 1e-5;        ///< of the normalizations
    bool norm_first = false;  ///< normalizes before attention and linear layers, instead of after the residual sums
    bool bias = true;
    bool causal = false;  ///< token i attends to tokens 0 to i
  };
  explicit TransformerEncoderLayer(int64_t heads) : TransformerEncoderLayer(heads, Options{}) {}
  /// Throws Error unless heads >= 1, feedforward >= 1 and dropout lies in [0, 1), and for an unknown activation.
  TransformerEncoderLayer(int64_t heads, Options options);
  Value forward(Builder& b, Value x) const override;
  std::string describe() const override;

 private:
  int64_t heads_;
  Options options_;
};

}  // namespace tutti::nn
