// Written by scripts/collect.py from graph/ops/attention.cpp: change that file.
#pragma once
#include "graph/op.h"
#include "graph/op_options.h"

namespace tutti {

extern TUTTI_API const OpDef attention_op;
extern TUTTI_API const OpDef attention_grad_op;
/// Options of attention; PyTorch's defaults.
struct AttentionOptions {
  bool causal = false;               ///< query i attends to keys 0 to i
  std::optional<double> scale = {};  ///< of the scores; default 1 / sqrt(D)
  Value mask = {};                   ///< bool (true: attend) or added to the scores; broadcast to [B, Hq, T, S]
  double dropout = 0;                ///< on the probabilities; needs seed and step, see `dropout`
  Value seed = {}, step = {};
  int64_t stream = 0;
};
/// softmax(q k^T * scale) v for q [B, Hq, T, D], k [B, Hkv, S, D] and v [B, Hkv, S, Dv]: y [B, Hq, T, Dv]. Hq is a
/// multiple of Hkv; consecutive query heads share a key head. The result is 0 for a query that attends to no key.
TUTTI_API Value attention(Value q, Value k, Value v, const AttentionOptions& o = {});
/// y, and per query the logarithm of the sum of exponentials, [B, Hq, T] (f32 for f16 and bf16), 0 for a query that
/// attends to no key.
TUTTI_API Values attention_with_lse(Value q, Value k, Value v, const AttentionOptions& o = {});

}  // namespace tutti
