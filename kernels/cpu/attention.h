// Scaled dot-product attention and its gradient, computed in blocks of queries and keys, so that only one block of
// probabilities exists at a time.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa_kernels.h"

namespace tutti::kernels {

/// A mask that is added to the scores, or (boolean) selects them; strides of [batch, heads, queries, keys] in elements.
struct AttentionMask {
  bool given = false;
  Storage storage = Storage::word;  ///< boolean: true attends
  int64_t batch = 0, head = 0, query = 0, key = 0;
};

/// Dropout of probabilities, with the mask of the op `dropout` over [batch, heads, queries, keys].
struct AttentionDropout {
  double p = 0;
  uint32_t stream = 0;
};

/// The ops attention and attention_grad: q [batch, heads, queries, size], k [batch, key_heads, keys, size], v [batch,
/// key_heads, keys, value_size], all row-major in `storage`. No dimension is 0.
struct Attention {
  int64_t batch, heads, key_heads, queries, keys, size, value_size;
  float scale;
  bool causal;
  Storage storage;
  AttentionMask mask = {};
  AttentionDropout dropout = {};
  const IsaKernels* loops = &isa_kernels();

  /// Additional inputs.
  struct More {
    const void* mask = nullptr;
    const uint32_t* seed = nullptr;  ///< two words, low first
    const int32_t* step = nullptr;
  };
  size_t scratch_bytes(int threads) const;
  /// y and lse may be null.
  void run(const void* q, const void* k, const void* v, const More& more, void* y, float* lse, std::byte* scratch,
           int threads) const;
  size_t grad_scratch_bytes(int threads) const;
  /// Any of dq, dk and dv may be null.
  void run_grad(const void* q, const void* k, const void* v, const void* dy, const float* lse, const float* delta,
                const More& more, void* dq, void* dk, void* dv, std::byte* scratch, int threads) const;
};

}  // namespace tutti::kernels
