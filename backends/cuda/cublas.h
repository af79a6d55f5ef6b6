// Products through cuBLASLt, opened at run time.
#pragma once
#include <cublasLt.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/kernel_maker.h"
#include "backends/cuda/row_copy.h"
#include "backends/cuda/tune.h"
#include "kernels/codegen/portable.h"
#include "sdk/library.h"

// clang-format off
#define TUTTI_CUBLAS_FUNCTIONS(X)                                                                                      \
  X(cublasLtCreate)                                                                                                    \
  X(cublasLtDestroy) X(cublasLtGetVersion) X(cublasLtGetStatusString) X(cublasLtMatmul)                                \
      X(cublasLtMatmulAlgoGetHeuristic) X(cublasLtMatmulAlgoCheck) X(cublasLtMatmulDescCreate) X(cublasLtMatmulDescDestroy)                       \
          X(cublasLtMatmulDescSetAttribute) X(cublasLtMatrixLayoutCreate) X(cublasLtMatrixLayoutDestroy)               \
              X(cublasLtMatrixLayoutSetAttribute) X(cublasLtMatmulPreferenceCreate) X(cublasLtMatmulPreferenceDestroy) \
                  X(cublasLtMatmulPreferenceSetAttribute)
// clang-format on

namespace tutti::cuda {

struct CublasApi {
#define TUTTI_CUDA_POINTER(name) decltype(&::name) name = nullptr;
  TUTTI_CUBLAS_FUNCTIONS(TUTTI_CUDA_POINTER)
#undef TUTTI_CUDA_POINTER
};

/// A handle in the current context.
class Cublas {
 public:
  /// The functions of the newest library, of those for at most the major version of `driver_version` (13000 is 13.0).
  /// Throws Error(declined) if none can be opened.
  static CublasApi load(int driver_version);
  /// Throws like load, and Error(declined) if the library refuses the device.
  static std::shared_ptr<const Cublas> open(int driver_version, bool tf32 = false,
                                            std::shared_ptr<Tuner> tuner = nullptr,
                                            std::shared_ptr<const KernelMaker> kernels = nullptr);
  /// A null `tuner` uses the library's first choices without a trial, and no activations. Null `kernels`: no copies.
  /// `least_copied`: multiply-adds from which a product may use copies.
  explicit Cublas(const CublasApi& api, bool tf32 = false, std::shared_ptr<Tuner> tuner = nullptr,
                  std::shared_ptr<const KernelMaker> kernels = nullptr, double least_copied = 1e9);
  ~Cublas();
  Cublas(const Cublas&) = delete;

  /// f32 in strict f32 (or TF32 if enabled), f16 and bf16 with f32 sums. Bias, relu, the sum of an operand, and gelu
  /// (not in strict f32) use the library's epilogue; activations only with an algorithm that propagates NaN, which
  /// EPILOGUE_RELU does not guarantee. The algorithm is the tuner's choice, else the first of the library's ranking.
  /// Large products with tensor cores may be computed on copies of matrices whose rows are no multiples of 16 bytes
  /// apart, with rows that are; these copies are in the workspace.
  /// Throws Error(declined) for batches with non-uniform strides, if the library refuses, and for a failed trial.
  codegen::LaunchList matmul(const codegen::Matmul& p, const sdk::LibraryRequest& request = {}) const;
  std::string version() const;

  /// Algorithms for one description in the library's order.
  using Ranking = std::vector<cublasLtMatmulHeuristicResult_t>;

 private:
  void check(cublasStatus_t status, const char* call) const;
  std::shared_ptr<const RowCopier> copier(size_t element_bytes) const;

  std::shared_ptr<const CublasApi> api_;
  std::shared_ptr<Tuner> tuner_;
  std::shared_ptr<const KernelMaker> kernels_;
  mutable std::map<size_t, std::shared_ptr<const RowCopier>> copiers_;  // by bytes of an element
  mutable std::map<std::string, Ranking> rankings_;  // cached, because a node is planned several times
  cublasLtHandle_t handle_ = nullptr;
  bool tf32_;
  double least_copied_;
};

}  // namespace tutti::cuda
