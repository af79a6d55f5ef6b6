// Attention as a graph of cuDNN, in f16 and bf16.
#pragma once
#include "backends/cuda/cudnn_graph.h"
#include "kernels/codegen/portable.h"

namespace tutti::cuda {

/// Both throw Error(declined) for f32, masks and dropout (cuDNN draws other random numbers). Plans use at most 1 GiB.
/// Buffers: q, k, v, y, and lse if `lse`.
GraphWork attention_graph(const codegen::Attention& a, bool lse);
/// Buffers: q, k, v, dy, lse, delta (not read: cuDNN computes it from y), y, dq, dk, dv.
GraphWork attention_grad_graph(const codegen::Attention& a);

}  // namespace tutti::cuda
