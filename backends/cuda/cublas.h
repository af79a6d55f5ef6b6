// Products through cuBLASLt, opened at run time.
#pragma once
#include <cublasLt.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

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
  /// Throws Error(declined) where the library cannot be opened or refuses the device. `driver_version` (13000 is 13.0):
  /// a library of a newer major version is not taken.
  static std::shared_ptr<const Cublas> open(int driver_version, bool tf32 = false,
                                            std::shared_ptr<Tuner> tuner = nullptr);
  /// `tuner`: null: the library's own first choices, untried, and no activations.
  explicit Cublas(const CublasApi& api, bool tf32 = false, std::shared_ptr<Tuner> tuner = nullptr);
  ~Cublas();
  Cublas(const Cublas&) = delete;

  /// f32 in strict f32 (or, where the handle was made for it, TF32), f16 and bf16 with f32 sums; bias, relu, the sum of
  /// an operand, and gelu (but in strict f32) in the library's epilogue; an activation only by an algorithm that hands
  /// NaN on, which EPILOGUE_RELU does not promise. The algorithm is the tuner's choice, else the first of the library's
  /// own ranking. Throws Error(declined) for batches of uneven strides, what the library refuses, and a trial that
  /// failed.
  codegen::LaunchList matmul(const codegen::Matmul& p, const sdk::LibraryRequest& request = {}) const;
  std::string version() const;

  /// Algorithms for one description, best guess first.
  using Ranking = std::vector<cublasLtMatmulHeuristicResult_t>;

 private:
  void check(cublasStatus_t status, const char* call) const;

  std::shared_ptr<const CublasApi> api_;
  std::shared_ptr<Tuner> tuner_;
  mutable std::map<std::string, Ranking> rankings_;  // asked for once: a node is planned several times
  cublasLtHandle_t handle_ = nullptr;
  bool tf32_;
};

}  // namespace tutti::cuda
