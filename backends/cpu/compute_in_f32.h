// Computes f16 and bf16 ops in f32 on converted copies, if a library has no fast implementation of them.
#pragma once
#include "backends/cpu/kernel.h"
#include "kernels/cpu/isa_kernels.h"

namespace tutti::cpu {

/// "" or the reason why the node cannot be computed in f32 (its inputs are neither f16 nor bf16).
MatchResult mismatch_in_f32(const NodeView& c);

/// A kernel that converts the node's inputs to f32, runs `wide` (whose layouts are those of the f32 copies, one per
/// input and result) and rounds its results, which are row-major. All copies are in the workspace.
KernelPtr make_in_f32(const NodeView& c, KernelPtr wide);

/// Convert n numbers from f16 or bf16 to f32 and back.
void to_f32(kernels::Storage from, float* y, const void* x, int64_t n, int threads);
void from_f32(kernels::Storage to, void* y, const float* x, int64_t n, int threads);

}  // namespace tutti::cpu
