// Written by scripts/collect.py from graph/ops/cross_entropy.cpp: change that file.
#pragma once
#include "graph/op.h"
#include "graph/op_options.h"

namespace tutti {

extern TUTTI_API const OpDef cross_entropy_op;
/// Options of cross_entropy; PyTorch's defaults.
struct CrossEntropyOptions {
  double label_smoothing = 0;
  int64_t ignore_index = -100;
  std::string reduction = "mean";
  Value weight = {};  ///< per class, [C]; default: all 1
};
/// The cross-entropy of softmax(logits) against class indices: logits [N, C] or [N, C, d1, ...], labels i32 [N] or [N,
/// d1, ...]. `ignore_index` and labels outside [0, C) are ignored; "mean" divides by the number of other labels (the
/// sum of their weights). A target of the logits' type holds class probabilities instead; then "mean" divides by N d1
/// ...
TUTTI_API Value cross_entropy(Value logits, Value target, const CrossEntropyOptions& o = {});

}  // namespace tutti
