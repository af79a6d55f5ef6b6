// Normalizations and embeddings composed of ops.
#pragma once
#include <optional>
#include <string>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// x [N, C, …] normalized with given mean and variance [C], as PyTorch in evaluation: y = (x - mean) / sqrt(variance +
/// eps) * weight + bias. Computed in f32 for f16 and bf16.
TUTTI_API Value batch_norm_eval(Value x, Value mean, Value variance, Value weight = {}, Value bias = {},
                                double eps = 1e-5);
/// group_norm with one channel per group. Throws Error unless x [N, C, …] has more than one element per channel.
TUTTI_API Value instance_norm(Value x, Value weight = {}, Value bias = {}, double eps = 1e-5);

/// Divides every vector along the axis by its p-norm, or by eps if that is larger (PyTorch's normalize).
TUTTI_API Value normalize(Value x, double p = 2, int64_t axis = 1, double eps = 1e-12);

/// PyTorch's embedding_bag. `mode`: the reduction over a bag's rows, "sum", "mean" or "max".
struct TUTTI_API EmbeddingBagOptions {
  std::string mode = "mean";
  Value per_sample_weights = {};            ///< factors of the rows, with the indices' shape; only for mode "sum"
  std::optional<int64_t> padding_idx = {};  ///< index to ignore; negative: counted from the end
};
/// One row [D] per bag: the reduced rows of weight [V, D]; zeros for an empty bag. Indices (i32) [B, L]: L per bag.
/// Indices outside [0, V) are clamped.
TUTTI_API Value embedding_bag(Value weight, Value indices, const EmbeddingBagOptions& o = {});
/// Indices [N] in B bags that start at offsets (i32, [B], ascending, the first 0). "max" takes memory for B N D
/// elements.
TUTTI_API Value embedding_bag(Value weight, Value indices, Value offsets, const EmbeddingBagOptions& o = {});

}  // namespace tutti
