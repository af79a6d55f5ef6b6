// Channels-last convolutions and their gradients as graphs of cuDNN, in f16 and bf16.
#pragma once
#include "backends/cuda/cudnn_graph.h"
#include "kernels/codegen/portable.h"

namespace tutti::cuda {

enum class ConvKind { forward, images, weights };

/// The workspace of a plan or algorithm for a convolution, in bytes.
constexpr int64_t most_convolution_space = 256 << 20;

/// Throws Error(declined) for f32 and without elements. Products are summed in f32, the bias added and ReLU applied
/// before the one rounding. Buffers: forward: x, w[, bias], y; images: cotangent, w, dx; weights: x, cotangent, dw.
GraphWork convolution_graph(const codegen::Conv& p, ConvKind kind);

}  // namespace tutti::cuda
