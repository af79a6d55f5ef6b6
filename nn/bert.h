// BERT (Devlin et al., 2019).
#pragma once
#include <string>

#include "core/base/export.h"
#include "nn/module.h"

namespace tutti::nn {

struct TUTTI_API BertOptions {
  int64_t vocabulary = 0, positions = 0, layers = 0, heads = 0, width = 0;
  int64_t hidden = 0;  ///< of the MLP; 0: 4 width
  int64_t types = 2;   ///< of token types: 0 for the first text of a pair, 1 for the second
  std::string activation = "gelu";
  double eps = 1e-12;
  bool tied = true;  ///< BertPredictions: the embedding is the output layer too; else cls.predictions.decoder
  double dropout = 0, attention_dropout = 0;
  bool operator==(const BertOptions&) const = default;
};

/// What a BERT reads: tokens [N, T], their types (null: 0) and which are no padding (null: all), i32 [N, T] each.
struct BertInputs {
  Value tokens, types = {}, mask = {};
};

/// The encoder "bert": vectors [N, T, width] of tokens; Hugging Face's parameter names.
class TUTTI_API Bert {
 public:
  explicit Bert(BertOptions options);
  Value forward(Builder& b, const BertInputs& x) const;
  std::string describe() const;

 private:
  BertOptions o_;
};

/// The pooler "bert.pooler": [N, width] of the first token.
struct TUTTI_API BertPooler {
  Value forward(Builder& b, Value x) const;
};

/// The head "cls.predictions": logits [N, T, vocabulary] of the token at every position.
struct TUTTI_API BertPredictions {
  BertOptions o;
  Value forward(Builder& b, Value x) const;
};

}  // namespace tutti::nn
