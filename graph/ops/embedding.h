// Written by scripts/collect.py from graph/ops/embedding.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef embedding_op;
/// y[…, :] = weight[indices[…], :]: rows of weight [V, D] for indices (i32) of any shape. The row `padding_idx` gets no
/// gradient; a negative one counts from the end. Indices outside [0, V) are clamped, as by gather: check tokens
/// beforehand.
TUTTI_API Value embedding(Value weight, Value indices, std::optional<int64_t> padding_idx = {});

}  // namespace tutti
