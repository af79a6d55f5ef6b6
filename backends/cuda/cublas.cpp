#include "backends/cuda/cublas.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/call.h"
#include "backends/cuda/open.h"

namespace tutti::cuda {
namespace {

constexpr size_t most_workspace = 32 << 20;  // what NVIDIA recommends for Hopper
constexpr uintptr_t buffer_alignment = 256;  // of Traits::alignment

cudaDataType_t type_of(DType t) {
  switch (t) {
    case DType::f32: return CUDA_R_32F;
    case DType::f16: return CUDA_R_16F;
    case DType::bf16: return CUDA_R_16BF;
    default: throw Error(Code::declined, fmt::format("dtype {}", name(t)));
  }
}

/// The one step between matrices of a batch; throws where the dimensions of the batch do not lie one behind the other.
int64_t even_step(const Shape& dims, const Shape& steps) {
  int64_t step = 0, expected = -1;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) continue;
    if (expected >= 0 && steps[d] != expected) throw Error(Code::declined, "batches of uneven strides");
    if (expected < 0) step = steps[d];
    expected = steps[d] * dims[d];
  }
  return step;
}

class Product : public Call {
 public:
  using Desc = Owned<cublasLtMatmulDesc_t, decltype(&cublasLtMatmulDescDestroy)>;
  using Layout = Owned<cublasLtMatrixLayout_t, decltype(&cublasLtMatrixLayoutDestroy)>;

  Product(std::shared_ptr<const CublasApi> api, cublasLtHandle_t handle, Desc desc, Layout a, Layout b, Layout y,
          bool bias)
      : api_(std::move(api)),
        handle_(handle),
        desc_(std::move(desc)),
        a_(std::move(a)),
        b_(std::move(b)),
        y_(std::move(y)),
        bias_(bias) {}

  /// Buffers: a, b[, bias], y[, workspace]. Row-major y = a b is column-major yᵀ = bᵀ aᵀ: the operands change places.
  void run(CUstream stream, std::span<const CUdeviceptr> buffers) const override {
    auto pointer = [&](size_t i) { return reinterpret_cast<void*>(buffers[i]); };
    size_t at = 2;
    if (bias_) {
      const void* bias = pointer(at++);
      check(api_->cublasLtMatmulDescSetAttribute(desc_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    }
    void* y = pointer(at++);
    float one = 1, zero = 0;
    check(api_->cublasLtMatmul(handle_, desc_, &one, pointer(1), b_, pointer(0), a_, &zero, y, y_, y, y_,
                               &algorithm_.algo, algorithm_.workspaceSize ? pointer(at) : nullptr,
                               algorithm_.workspaceSize, stream));
  }

  /// The library's own first choice for this shape.
  void choose(cublasLtMatmulPreference_t preference) {
    int found = 0;
    cublasStatus_t status =
        api_->cublasLtMatmulAlgoGetHeuristic(handle_, desc_, b_, a_, y_, y_, preference, 1, &algorithm_, &found);
    if (status == CUBLAS_STATUS_SUCCESS && found) status = algorithm_.state;
    if (status != CUBLAS_STATUS_SUCCESS || found == 0)
      throw Error(Code::declined,
                  fmt::format("cuBLASLt has no algorithm for it ({})", api_->cublasLtGetStatusString(status)));
  }
  size_t workspace() const { return algorithm_.workspaceSize; }

 private:
  void check(cublasStatus_t status) const {
    if (status != CUBLAS_STATUS_SUCCESS)
      throw Error(status == CUBLAS_STATUS_ALLOC_FAILED ? Code::no_memory : Code::internal,
                  fmt::format("cuda: cublasLtMatmul: {}", api_->cublasLtGetStatusString(status)));
  }

  std::shared_ptr<const CublasApi> api_;
  cublasLtMatmulHeuristicResult_t algorithm_ = {};
  cublasLtHandle_t handle_;
  Desc desc_;
  Layout a_, b_, y_;
  bool bias_;
};

}  // namespace

std::shared_ptr<const Cublas> Cublas::open(bool tf32) {
  std::string why;
  void* library = open_first(library_names("cublasLt", {"13", "12"}), why);
  if (!library)
    throw Error(Code::declined, fmt::format("cuBLASLt cannot be opened ({})", why),
                "install libcublas of CUDA 12 or 13");
  CublasApi api;
#define TUTTI_CUDA_TAKE(name) take(library, #name, "libcublasLt.so", api.name);
  TUTTI_CUBLAS_FUNCTIONS(TUTTI_CUDA_TAKE)
#undef TUTTI_CUDA_TAKE
  return std::make_shared<Cublas>(api, tf32);
}

Cublas::Cublas(const CublasApi& api, bool tf32) : api_(std::make_shared<CublasApi>(api)), tf32_(tf32) {
  check(api_->cublasLtCreate(&handle_), "cublasLtCreate");
}

Cublas::~Cublas() { api_->cublasLtDestroy(handle_); }

std::string Cublas::version() const {
  size_t v = api_->cublasLtGetVersion();  // 130100 is 13.1.0
  return fmt::format("{}.{}", v / 10000, v / 100 % 100);
}

void Cublas::check(cublasStatus_t status, const char* call) const {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(Code::declined, fmt::format("{}: {}", call, api_->cublasLtGetStatusString(status)));
}

dialect::Work Cublas::matmul(const dialect::Matmul& p) const {
  cudaDataType_t type = type_of(p.dtype);
  int64_t batches = num_elements(p.batch);
  int64_t a_step = even_step(p.batch, p.a_batch), b_step = even_step(p.batch, p.b_batch);
  if (batches > INT32_MAX) throw Error(Code::declined, "more than 2^31 batches");

  cublasLtMatmulDesc_t raw = nullptr;
  auto compute = tf32_ && p.dtype == DType::f32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  check(api_->cublasLtMatmulDescCreate(&raw, compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
  Product::Desc desc(raw, api_->cublasLtMatmulDescDestroy);
  auto set = [&](cublasLtMatmulDescAttributes_t which, auto value) {
    check(api_->cublasLtMatmulDescSetAttribute(desc, which, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, p.tb ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, p.ta ? CUBLAS_OP_T : CUBLAS_OP_N);
  cublasLtEpilogue_t epilogue = p.bias ? (p.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS)
                                       : (p.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  if (p.bias) {
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type);
    // The ranking reads the pointer's alignment, which is that of every buffer; the pointer itself comes with the call.
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void*>(buffer_alignment));
  }

  auto layout = [&](int64_t rows, int64_t columns, int64_t step) {
    cublasLtMatrixLayout_t l = nullptr;
    check(api_->cublasLtMatrixLayoutCreate(&l, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), rows),
          "cublasLtMatrixLayoutCreate");
    Product::Layout owned(l, api_->cublasLtMatrixLayoutDestroy);
    auto count = static_cast<int32_t>(batches);
    check(api_->cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
          "the batch's size");
    check(api_->cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step),
          "the batch's step");
    return owned;
  };
  // Row-major [r, c] is column-major [c, r].
  Product::Layout a = p.ta ? layout(p.m, p.k, a_step) : layout(p.k, p.m, a_step);
  Product::Layout b = p.tb ? layout(p.k, p.n, b_step) : layout(p.n, p.k, b_step);
  Product::Layout y = layout(p.n, p.m, p.m * p.n);

  cublasLtMatmulPreference_t wish = nullptr;
  check(api_->cublasLtMatmulPreferenceCreate(&wish), "cublasLtMatmulPreferenceCreate");
  Owned preference(wish, api_->cublasLtMatmulPreferenceDestroy);
  size_t most = most_workspace;
  uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;  // parts are added in f32, in a fixed order
  check(api_->cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most),
        "the workspace's size");
  check(api_->cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                                   sizeof schemes),
        "the reductions");

  auto product =
      std::make_shared<Product>(api_, handle_, std::move(desc), std::move(a), std::move(b), std::move(y), p.bias);
  product->choose(wish);
  size_t workspace = product->workspace();
  return work_of(product, "cublasLt", p.bias ? std::vector<int>{0, 1, 2, 3} : std::vector<int>{0, 1, 2}, workspace);
}

}  // namespace tutti::cuda
