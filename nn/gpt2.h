// GPT-2 (Radford et al., 2019).
#pragma once
#include <string>

#include "core/base/export.h"
#include "nn/module.h"

namespace tutti::nn {

struct TUTTI_API Gpt2Options {
  int64_t vocabulary = 0, positions = 0, layers = 0, heads = 0, width = 0;
  int64_t hidden = 0;  ///< of the MLP; 0: 4 width
  std::string activation = "gelu_tanh";
  double eps = 1e-5;
  bool tied = true;              ///< the embedding is the output layer too; else lm_head
  bool scaled = true;            ///< attention scores are divided by sqrt(head size)
  bool scaled_by_layer = false;  ///< and by the number of the layer, from 1
  double embedding_dropout = 0, attention_dropout = 0, residual_dropout = 0;
  bool operator==(const Gpt2Options&) const = default;
};

/// Tokens [N, T] to logits [N, T, vocabulary]: pre-norm blocks; Hugging Face's parameter names and shapes (projection
/// weights are [inputs, outputs]).
class TUTTI_API Gpt2 {
 public:
  explicit Gpt2(Gpt2Options options);
  Value forward(Builder& b, Value tokens) const;
  std::string describe() const;

 private:
  Gpt2Options o_;
};

}  // namespace tutti::nn
