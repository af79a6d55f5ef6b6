// f16 and bf16 where oneDNN has no implementation, or only its reference: computed in f32 on widened copies.
#pragma once
#include "backends/onednn/kernel.h"
#include "kernels/cpu/isa_kernels.h"

namespace tutti::onednn {

/// The dtype of the case's inputs; "" or why widening does not help it (it is neither f16 nor bf16).
Mismatch mismatch_in_f32(const NodeView& c);

/// A kernel that widens the inputs of the case to f32, runs `wide` (its layouts are those of the f32 copies, one per
/// input and result) and rounds its results, which come out row-major. All copies live in the workspace.
KernelPtr make_in_f32(const NodeView& c, KernelPtr wide);

/// n numbers of f16 or bf16 as f32, and back.
void to_f32(kernels::Storage from, float* y, const void* x, int64_t n, int threads);
void from_f32(kernels::Storage to, void* y, const float* x, int64_t n, int threads);

}  // namespace tutti::onednn
