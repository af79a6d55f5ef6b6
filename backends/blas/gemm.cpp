#include "backends/blas/gemm.h"

#include <fmt/format.h>

#include <mutex>

#include "kernels/cpu/isa_kernels.h"

#ifdef TUTTI_BLAS
#include <cblas.h>
#endif

namespace tutti::blas {

#ifdef TUTTI_BLAS

void gemm(const Gemm& p) {
  if (p.k == 0) return own_gemm(p);  // some refuse the distances of rows of empty matrices
  auto order = [](bool transposed) { return transposed ? CblasTrans : CblasNoTrans; };
  auto count = [](int64_t n) { return static_cast<int>(n); };
  cblas_sgemm(CblasRowMajor, order(p.ta), order(p.tb), count(p.m), count(p.n), count(p.k), 1, p.a, count(p.lda), p.b,
              count(p.ldb), p.beta, p.c, count(p.ldc));
}

#else

void gemm(const Gemm& p) { own_gemm(p); }

#endif

#ifdef TUTTI_OPENBLAS

namespace {

std::mutex mutex;
int holders = 0, threads_before = 1;

}  // namespace

std::string description() {
  // "OpenBLAS 0.3.21 DYNAMIC_ARCH …"
  std::string config = openblas_get_config();
  size_t name = config.find(' '), end = config.find(' ', name + 1);
  return fmt::format("{} ({})", name == std::string::npos ? "OpenBLAS" : config.substr(0, end),
                     openblas_get_corename());
}

void hold_threads() {
  std::lock_guard lock(mutex);
  if (holders++ > 0) return;
  threads_before = openblas_get_num_threads();
  openblas_set_num_threads(1);
}

void release_threads() {
  std::lock_guard lock(mutex);
  if (--holders == 0) openblas_set_num_threads(threads_before);
}

#else

std::string description() {
#ifdef TUTTI_BLAS
  return fmt::format("{} ({})", TUTTI_BLAS, kernels::isa_kernels().name);
#else
  return fmt::format("no BLAS ({})", kernels::isa_kernels().name);
#endif
}

void hold_threads() {}
void release_threads() {}

#endif

}  // namespace tutti::blas
