// Products of two matrices on one thread. Callers split problems between threads, by their shape alone.
#pragma once
#include <cstdint>
#include <string>

namespace tutti::blas {

/// c [m, n] = beta c + a [m, k] b [k, n] in f32, all row-major; `ta`, `tb`: stored transposed. `lda`, `ldb` and `ldc`
/// are the distances of stored rows. No dimension is above 2^31 - 1. beta is 0 (c is not read) or 1.
struct Gemm {
  bool ta, tb;
  int64_t m, n, k;
  const float* a;
  int64_t lda;
  const float* b;
  int64_t ldb;
  float beta;
  float* c;
  int64_t ldc;
};

/// By the BLAS, else by own_gemm.
void gemm(const Gemm& p);
/// By the kernels of attention in kernels/cpu.
void own_gemm(const Gemm& p);

/// "OpenBLAS 0.3.21 (Zen)"; "no BLAS (avx2)".
std::string description();

/// A BLAS with threads of its own computes on the calling one between these calls, which may be nested and come from
/// several threads; afterwards it has the number of threads from before.
void hold_threads();
void release_threads();

}  // namespace tutti::blas
