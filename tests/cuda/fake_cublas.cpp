#include "tests/cuda/fake_cublas.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "core/base/dtype.h"
#include "tests/cuda/fake_cuda.h"

namespace tutti::cuda::fake {
namespace {

std::unique_ptr<CublasState> current = std::make_unique<CublasState>();

/// A handle, and the algorithms whose kernels it has loaded.
struct Handle {
  std::set<uint64_t> loaded;
};

struct Desc {
  int32_t ta = CUBLAS_OP_N, tb = CUBLAS_OP_N;
  int32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT, bias_type = -1, aux_type = -1;
  void *bias = nullptr, *aux = nullptr;
  int64_t aux_ld = 0;

  bool has(int bits) const { return epilogue > CUBLASLT_EPILOGUE_DEFAULT && (epilogue & bits) == bits; }
  bool adds() const { return has(CUBLASLT_EPILOGUE_BIAS); }
  bool cuts() const { return has(CUBLASLT_EPILOGUE_RELU); }
  bool bends() const { return has(CUBLASLT_EPILOGUE_GELU); }
  bool keeps() const { return has(CUBLASLT_EPILOGUE_GELU_AUX); }
  bool sums() const { return epilogue == CUBLASLT_EPILOGUE_BGRADA || epilogue == CUBLASLT_EPILOGUE_BGRADB; }
};

struct Layout {
  cudaDataType type;
  int64_t rows, columns, ld;
  int32_t count = 1;
  int64_t step = 0;

  DType dtype() const { return type == CUDA_R_32F ? DType::f32 : type == CUDA_R_16F ? DType::f16 : DType::bf16; }
  double load(const void* data, int64_t g, int64_t row, int64_t column, int32_t op) const {
    if (op == CUBLAS_OP_T) std::swap(row, column);
    return load_element(dtype(), data, static_cast<size_t>(g * step + row + column * ld));
  }
};

template <class T>
T& of(const void* handle) {
  return *static_cast<T*>(const_cast<void*>(handle));
}

template <class T, class Handle, class... Arguments>
cublasStatus_t create(const char* name, Handle* handle, Arguments... arguments) {
  if (auto at = current->failing.find(name); at != current->failing.end()) return at->second;
  *handle = reinterpret_cast<Handle>(new T{arguments...});
  ++current->descriptors;
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
cublasStatus_t destroy(const void* handle) {
  delete static_cast<const T*>(handle);
  --current->descriptors;
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
cublasStatus_t take(T& field, const void* from, size_t bytes) {
  if (bytes != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

/// Whether the operands fit together: op(A) [m, k], op(B) [k, n], D [m, n], columns that do not overlap.
bool fits(const Desc& desc, const Layout& a, const Layout& b, const Layout& d) {
  auto turned = [](const Layout& l, int32_t op) {
    return op == CUBLAS_OP_T ? std::pair(l.columns, l.rows) : std::pair(l.rows, l.columns);
  };
  auto [m, k] = turned(a, desc.ta);
  auto [depth, n] = turned(b, desc.tb);
  bool columns = a.ld >= a.rows && b.ld >= b.rows && d.ld >= d.rows;
  bool apart = d.count == 1 || d.step >= d.ld * d.columns;
  bool types = a.type == b.type && a.type == d.type &&
               ((!desc.adds() && !desc.sums()) || desc.bias_type == static_cast<int>(a.type));
  bool aux =
      !desc.keeps() || (desc.aux_type == static_cast<int>(a.type) && desc.aux_ld % 8 == 0 && desc.aux_ld >= d.rows);
  bool alone = d.count == 1 || (!desc.keeps() && !desc.sums());
  return columns && apart && types && aux && alone && m == d.rows && n == d.columns && k == depth &&
         a.count == d.count && b.count == d.count;
}

/// D = epilogue(alpha op(A) op(B) + beta C). C is not read where beta is 0.
void multiply(const Desc& desc, float alpha, const Layout& a, const void* from_a, const Layout& b, const void* from_b,
              float beta, const Layout& c, const void* from_c, const Layout& d, void* to, bool split) {
  int64_t k = desc.ta == CUBLAS_OP_T ? a.rows : a.columns;
  for (int64_t g = 0; g < d.count; ++g)
    for (int64_t j = 0; j < d.columns; ++j)
      for (int64_t i = 0; i < d.rows; ++i) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) sum += a.load(from_a, g, i, l, desc.ta) * b.load(from_b, g, l, j, desc.tb);
        sum *= alpha;
        if (beta != 0) sum += beta * c.load(from_c, g, i, j, CUBLAS_OP_N);
        if (split) sum = round_to(d.dtype(), sum);
        if (desc.adds()) sum += load_element(d.dtype(), desc.bias, static_cast<size_t>(i));
        if (desc.keeps()) store_element(d.dtype(), desc.aux, static_cast<size_t>(i + j * desc.aux_ld), sum);
        if (desc.cuts() && !(current->relu_keeps_nan && std::isnan(sum))) sum = sum > 0 ? sum : 0;
        if (desc.bends()) sum = 0.5 * sum * (1 + std::tanh(0.79788456080286536 * (sum + 0.044715 * sum * sum * sum)));
        store_element(d.dtype(), to, static_cast<size_t>(g * d.step + i + j * d.ld), sum);
      }
  if (!desc.sums()) return;
  bool of_a = desc.epilogue == CUBLASLT_EPILOGUE_BGRADA;
  for (int64_t i = 0; i < (of_a ? d.rows : d.columns); ++i) {
    double sum = 0;
    for (int64_t l = 0; l < k; ++l) sum += of_a ? a.load(from_a, 0, i, l, desc.ta) : b.load(from_b, 0, l, i, desc.tb);
    store_element(d.dtype(), desc.bias, static_cast<size_t>(i), sum);
  }
}

cublasLtMatmulHeuristicResult_t ranked(uint64_t algorithm) {
  cublasLtMatmulHeuristicResult_t result = {};
  result.algo.data[0] = algorithm;
  result.workspaceSize = current->workspace * algorithm;
  result.state = CUBLAS_STATUS_SUCCESS;
  return result;
}

}  // namespace

CublasState& reset_cublas() {
  current = std::make_unique<CublasState>();
  return *current;
}

CublasApi cublas() {
  CublasApi f;
  f.cublasLtCreate = [](cublasLtHandle_t* h) {
    return usable() == CUDA_SUCCESS ? create<Handle>("cublasLtCreate", h) : CUBLAS_STATUS_NOT_INITIALIZED;
  };
  f.cublasLtDestroy = [](cublasLtHandle_t h) { return destroy<Handle>(h); };
  f.cublasLtGetVersion = []() -> size_t { return 130100; };
  f.cublasLtGetStatusString = [](cublasStatus_t) { return "as the test wanted"; };
  f.cublasLtMatmulDescCreate = [](cublasLtMatmulDesc_t* d, cublasComputeType_t compute, cudaDataType_t) {
    current->compute = compute;
    return create<Desc>("cublasLtMatmulDescCreate", d);
  };
  f.cublasLtMatmulDescDestroy = [](cublasLtMatmulDesc_t d) { return destroy<Desc>(d); };
  f.cublasLtMatmulDescSetAttribute = [](cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t which,
                                        const void* from, size_t bytes) {
    auto& d = of<Desc>(handle);
    switch (which) {
      case CUBLASLT_MATMUL_DESC_TRANSA: return take(d.ta, from, bytes);
      case CUBLASLT_MATMUL_DESC_TRANSB: return take(d.tb, from, bytes);
      case CUBLASLT_MATMUL_DESC_EPILOGUE: return take(d.epilogue, from, bytes);
      case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return take(d.bias, from, bytes);
      case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return take(d.bias_type, from, bytes);
      case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return take(d.aux, from, bytes);
      case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return take(d.aux_ld, from, bytes);
      case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE: return take(d.aux_type, from, bytes);
      default: return CUBLAS_STATUS_NOT_SUPPORTED;
    }
  };
  f.cublasLtMatrixLayoutCreate = [](cublasLtMatrixLayout_t* l, cudaDataType type, uint64_t rows, uint64_t columns,
                                    int64_t ld) {
    return create<Layout>("cublasLtMatrixLayoutCreate", l, type, static_cast<int64_t>(rows),
                          static_cast<int64_t>(columns), ld);
  };
  f.cublasLtMatrixLayoutDestroy = [](cublasLtMatrixLayout_t l) { return destroy<Layout>(l); };
  f.cublasLtMatrixLayoutSetAttribute = [](cublasLtMatrixLayout_t handle, cublasLtMatrixLayoutAttribute_t which,
                                          const void* from, size_t bytes) {
    auto& l = of<Layout>(handle);
    switch (which) {
      case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return take(l.count, from, bytes);
      case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return take(l.step, from, bytes);
      default: return CUBLAS_STATUS_NOT_SUPPORTED;
    }
  };
  f.cublasLtMatmulPreferenceCreate = [](cublasLtMatmulPreference_t* p) {
    return create<int>("cublasLtMatmulPreferenceCreate", p);
  };
  f.cublasLtMatmulPreferenceDestroy = [](cublasLtMatmulPreference_t p) { return destroy<int>(p); };
  f.cublasLtMatmulPreferenceSetAttribute = [](cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t which,
                                              const void* from, size_t bytes) {
    return which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? take(current->most_workspace, from, bytes)
                                                             : take(current->schemes, from, bytes);
  };
  f.cublasLtMatmulAlgoGetHeuristic = [](cublasLtHandle_t, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                        cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                        cublasLtMatmulPreference_t, int most, cublasLtMatmulHeuristicResult_t* list,
                                        int* found) {
    ++current->rankings;
    *found = 0;
    if (!fits(of<Desc>(desc), of<Layout>(a), of<Layout>(b), of<Layout>(d))) return CUBLAS_STATUS_INVALID_VALUE;
    const auto& told = of<Desc>(desc);
    for (const void* l : {a, b, d})
      if (current->close && of<Layout>(l).ld > of<Layout>(l).rows) return CUBLAS_STATUS_NOT_SUPPORTED;
    // It judges further vectors by the alignment of their pointers.
    if (((told.adds() || told.sums()) && !told.bias) || (told.keeps() && !told.aux)) return CUBLAS_STATUS_INVALID_VALUE;
    if (current->epilogues.contains(told.epilogue)) return CUBLAS_STATUS_NOT_SUPPORTED;
    bool splits = current->splits_always || (current->schemes & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
    for (uint64_t k = 1; k <= static_cast<uint64_t>(current->found) && *found < most; ++k)
      if (splits || !current->split.contains(k)) list[(*found)++] = ranked(k);
    return *found ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
  };
  f.cublasLtMatmulAlgoCheck = [](cublasLtHandle_t, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                 cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                 const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result) {
    if (!fits(of<Desc>(desc), of<Layout>(a), of<Layout>(b), of<Layout>(d)) || algorithm->data[0] == 0 ||
        current->refused.contains(algorithm->data[0]))
      return CUBLAS_STATUS_NOT_SUPPORTED;
    *result = ranked(algorithm->data[0]);
    return CUBLAS_STATUS_SUCCESS;
  };
  f.cublasLtMatmul = [](cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                        cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                        const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                        cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* space,
                        size_t bytes, cudaStream_t stream) {
    if (auto at = current->failing.find("cublasLtMatmul"); at != current->failing.end()) return at->second;
    uint64_t used = algorithm->data[0];
    if (current->broken.contains(used) || usable() != CUDA_SUCCESS) return CUBLAS_STATUS_EXECUTION_FAILED;
    if (of<Handle>(handle).loaded.insert(used).second && unsafe_call() != CUDA_SUCCESS)
      return CUBLAS_STATUS_INTERNAL_ERROR;
    ++current->products;
    current->used = used;
    current->epilogue = of<Desc>(desc).epilogue;
    if (bytes < ranked(used).workspaceSize || (bytes && !space)) return CUBLAS_STATUS_INVALID_VALUE;
    CUresult sent =
        enqueue(stream, [=, desc = of<Desc>(desc), la = of<Layout>(a_layout), lb = of<Layout>(b_layout),
                         lc = of<Layout>(c_layout), ld = of<Layout>(d_layout),
                         alpha = *static_cast<const float*>(alpha), beta = *static_cast<const float*>(beta)] {
          if (space) std::memset(space, 0xA5, bytes);  // a workspace that is somebody else's memory is noticed
          multiply(desc, alpha, la, a, lb, b, beta, lc, c, ld, d, current->split.contains(used));
          for (const Layout& l : {la, lb, ld})
            if (l.ld * static_cast<int64_t>(size_of(l.dtype())) % 16) {
              state().clock += current->unaligned_cost;
              break;
            }
          if (auto cost = current->costs.find(used); cost != current->costs.end()) state().clock += cost->second;
        });
    return sent == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
  };
  return f;
}

}  // namespace tutti::cuda::fake
