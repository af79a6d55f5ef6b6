// Masked language modelling, BERT's objective.
#pragma once
#include "core/base/export.h"
#include "nn/bert.h"
#include "train/task/task.h"

namespace tutti {

struct TUTTI_API MaskedLanguageOptions {
  int64_t mask = 0;    ///< the token [MASK]
  int64_t random = 0;  ///< random tokens are below this
};
/// The cross entropy of the masked tokens of the column "tokens"; a column "labels" (-100: not predicted) replaces
/// random masking. Without `scored` the task predicts the logits of the tokens as they are.
TUTTI_API Task masked_language(const nn::BertOptions& bert, const MaskedLanguageOptions& options, bool scored = true);
/// The columns "token_types" and "attention_mask" of a batch, if it has them, beside its "tokens".
TUTTI_API nn::BertInputs bert_inputs(const Batch& x, Value tokens, const nn::BertOptions& bert);

}  // namespace tutti
