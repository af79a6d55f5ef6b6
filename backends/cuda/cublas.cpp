#include "backends/cuda/cublas.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backends/cuda/call.h"
#include "backends/cuda/open.h"
#include "backends/cuda/vendor_types.h"

namespace tutti::cuda {
namespace {

constexpr int most_candidates = 8;
constexpr size_t most_workspace = 32 << 20;  // NVIDIA's recommendation for Hopper
constexpr uintptr_t buffer_alignment = 256;  // Traits::alignment

/// The single stride between matrices of a batch; throws if the batch dimensions are not contiguous.
int64_t even_step(const Shape& dims, const Shape& steps) {
  int64_t step = 0, expected = -1;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) continue;
    if (expected >= 0 && steps[d] != expected)
      throw Error(Code::declined, "batches with non-uniform strides are not supported");
    if (expected < 0) step = steps[d];
    expected = steps[d] * dims[d];
  }
  return step;
}

/// The computation requested from the library.
struct Asked {
  codegen::Matmul shape;
  sdk::LibraryRequest request;
  std::string description;

  cublasLtEpilogue_t epilogue() const {
    // The library's matrices are column-major, so its A is b and its B is a.
    if (request.sum != sdk::OperandSum::none)
      return request.sum == sdk::OperandSum::b ? CUBLASLT_EPILOGUE_BGRADA : CUBLASLT_EPILOGUE_BGRADB;
    int bits = 0;
    if (shape.bias) bits |= CUBLASLT_EPILOGUE_BIAS;
    if (shape.relu) bits |= CUBLASLT_EPILOGUE_RELU;
    if (request.gelu == sdk::Gelu::plain) bits |= CUBLASLT_EPILOGUE_GELU;
    if (request.gelu == sdk::Gelu::keep) bits |= CUBLASLT_EPILOGUE_GELU_AUX;
    return bits ? static_cast<cublasLtEpilogue_t>(bits) : CUBLASLT_EPILOGUE_DEFAULT;
  }
  /// Whether there is an operation on the result before it is rounded to a 16-bit dtype. Where partial sums over k are
  /// added by a kernel of their own, cuBLASLt rounds the result first, and then the epilogue's.
  bool rounds() const { return is_narrow(shape.dtype) && !sums() && epilogue() != CUBLASLT_EPILOGUE_DEFAULT; }
  bool sums() const { return request.sum != sdk::OperandSum::none; }
  bool keeps() const { return request.gelu == sdk::Gelu::keep; }
  size_t inputs() const { return shape.bias ? 3 : 2; }
  size_t results() const { return sums() || keeps() ? 2 : 1; }
};

class Product : public Tunable {
 public:
  using Desc = Owned<cublasLtMatmulDesc_t, decltype(&cublasLtMatmulDescDestroy)>;
  using Layout = Owned<cublasLtMatrixLayout_t, decltype(&cublasLtMatrixLayoutDestroy)>;

  Product(std::shared_ptr<const CublasApi> api, cublasLtHandle_t handle, Desc desc, Layout a, Layout b, Layout y,
          Asked asked)
      : api_(std::move(api)),
        handle_(handle),
        desc_(std::move(desc)),
        a_(std::move(a)),
        b_(std::move(b)),
        y_(std::move(y)),
        asked_(std::move(asked)) {}

  /// Buffers: a, b[, bias], y[, sum or the input of gelu][, workspace]. Row-major y = a b is column-major yᵀ = bᵀ aᵀ:
  /// the operands are swapped.
  void run(CUstream stream, std::span<const CUdeviceptr> buffers) const override {
    auto pointer = [&](size_t i) { return reinterpret_cast<void*>(buffers[i]); };
    size_t y = asked_.inputs(), space = y + asked_.results();
    if (asked_.shape.bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointer(2));
    if (asked_.sums()) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointer(y + 1));
    if (asked_.keeps()) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, pointer(y + 1));
    float one = 1, zero = 0;
    const cublasLtMatmulHeuristicResult_t& chosen = found_[selected_];
    check(api_->cublasLtMatmul(handle_, desc_, &one, pointer(1), b_, pointer(0), a_, &zero, pointer(y), y_, pointer(y),
                               y_, &chosen.algo, chosen.workspaceSize ? pointer(space) : nullptr, chosen.workspaceSize,
                               stream));
  }
  size_t inputs() const override { return asked_.inputs(); }

  /// Gets the library's ranking for this shape and selects the first algorithm.
  void rank(cublasLtMatmulPreference_t preference, std::map<std::string, Cublas::Ranking>& known) {
    auto at = known.find(asked_.description);
    if (at == known.end()) at = known.emplace(asked_.description, asked_for(preference)).first;
    found_ = at->second;
  }

  // ---- Tunable
  size_t candidates() const override { return found_.size(); }
  void select(size_t candidate) override { selected_ = candidate; }
  size_t workspace() const override { return found_[selected_].workspaceSize; }
  DType dtype() const override { return asked_.shape.dtype; }
  bool activates() const override { return asked_.shape.relu || asked_.request.gelu != sdk::Gelu::none; }
  std::optional<RoundingTrial> rounding() const override {
    return asked_.shape.bias ? rounding_trial(asked_.shape.dtype, asked_.shape.k) : std::nullopt;
  }
  std::string description() const override { return asked_.description; }
  std::vector<uint64_t> buffer_bytes() const override {
    const codegen::Matmul& p = asked_.shape;
    auto reach = [&](const Shape& steps, int64_t matrix) {
      for (size_t d = 0; d < steps.size(); ++d) matrix += (p.batch[d] - 1) * steps[d];
      return matrix;
    };
    int64_t y = num_elements(p.batch) * p.m * p.n;
    std::vector<int64_t> elements = {reach(p.a_batch, p.m * p.k), reach(p.b_batch, p.k * p.n)};
    if (p.bias) elements.push_back(p.n);
    elements.push_back(y);
    if (asked_.sums()) elements.push_back(asked_.request.sum == sdk::OperandSum::a ? p.m : p.n);
    if (asked_.keeps()) elements.push_back(y);
    std::vector<uint64_t> bytes;
    for (int64_t n : elements) bytes.push_back(static_cast<uint64_t>(n) * size_of(p.dtype));
    return bytes;
  }
  std::vector<std::byte> saved() const override {
    auto at = std::as_bytes(std::span(&found_[selected_].algo, 1));
    return {at.begin(), at.end()};
  }
  bool restore(std::span<const std::byte> algorithm) override {
    cublasLtMatmulHeuristicResult_t result = {};
    if (algorithm.size() != sizeof result.algo) return false;
    cublasLtMatmulAlgo_t algo;
    std::memcpy(&algo, algorithm.data(), sizeof algo);
    cublasStatus_t status = api_->cublasLtMatmulAlgoCheck(handle_, desc_, b_, a_, y_, y_, &algo, &result);
    if (status != CUBLAS_STATUS_SUCCESS || result.state != CUBLAS_STATUS_SUCCESS ||
        result.workspaceSize > most_workspace)
      return false;
    result.algo = algo;
    found_.push_back(result);
    selected_ = found_.size() - 1;
    return true;
  }

 private:
  Cublas::Ranking asked_for(cublasLtMatmulPreference_t preference) const {
    Cublas::Ranking list(most_candidates);
    int found = 0;
    cublasStatus_t status = api_->cublasLtMatmulAlgoGetHeuristic(handle_, desc_, b_, a_, y_, y_, preference,
                                                                 most_candidates, list.data(), &found);
    list.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<size_t>(found) : 0);
    if (!list.empty()) status = list[0].state;
    std::erase_if(list, [](const auto& f) { return f.state != CUBLAS_STATUS_SUCCESS; });
    if (list.empty())
      throw Error(Code::declined,
                  fmt::format("cuBLASLt has no algorithm for this matmul ({})", api_->cublasLtGetStatusString(status)));
    return list;
  }
  void set(cublasLtMatmulDescAttributes_t which, const void* pointer) const {
    check(api_->cublasLtMatmulDescSetAttribute(desc_, which, &pointer, sizeof pointer));
  }
  void check(cublasStatus_t status) const {
    if (status != CUBLAS_STATUS_SUCCESS)
      throw Error(status == CUBLAS_STATUS_ALLOC_FAILED ? Code::no_memory : Code::internal,
                  fmt::format("cuda: cublasLtMatmul: {}", api_->cublasLtGetStatusString(status)));
  }

  std::shared_ptr<const CublasApi> api_;
  cublasLtHandle_t handle_;
  Desc desc_;
  Layout a_, b_, y_;
  Asked asked_;
  Cublas::Ranking found_;
  size_t selected_ = 0;
};

/// "" or the reason why the library is not used.
std::string refuses(const codegen::Matmul& p, const sdk::LibraryRequest& r, bool tf32) {
  if (r.sum != sdk::OperandSum::none && (p.bias || p.relu || r.gelu != sdk::Gelu::none || !p.batch.empty()))
    return "a fused operand sum is not supported together with another epilogue or with a batch";
  if (r.gelu == sdk::Gelu::none) return "";
  if (p.relu) return "GELU after ReLU is not supported";
  if (p.dtype == DType::f32 && !tf32) return "cuBLASLt's GELU is not known to be accurate enough for f32";
  if (r.gelu == sdk::Gelu::keep && (p.n % 8 || !p.batch.empty()))
    return "cuBLASLt can keep the input of GELU only if N is a multiple of 8 and there is no batch";
  return "";
}

}  // namespace

CublasApi Cublas::load(int driver_version) {
  std::string why;
  std::vector<std::string> majors = {"12"};
  if (driver_version >= 13000) majors.insert(majors.begin(), "13");
  void* library = open_first(library_names("cublasLt", majors), why);
  if (!library)
    throw Error(Code::declined, fmt::format("cuBLASLt cannot be opened ({})", why),
                "install libcublas of CUDA 12 or 13");
  CublasApi api;
#define TUTTI_CUDA_TAKE(name) take(library, #name, "libcublasLt.so", api.name);
  TUTTI_CUBLAS_FUNCTIONS(TUTTI_CUDA_TAKE)
#undef TUTTI_CUDA_TAKE
  return api;
}

std::shared_ptr<const Cublas> Cublas::open(int driver_version, bool tf32, std::shared_ptr<Tuner> tuner) {
  return std::make_shared<Cublas>(load(driver_version), tf32, std::move(tuner));
}

Cublas::Cublas(const CublasApi& api, bool tf32, std::shared_ptr<Tuner> tuner)
    : api_(std::make_shared<CublasApi>(api)), tuner_(std::move(tuner)), tf32_(tf32) {
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

codegen::LaunchList Cublas::matmul(const codegen::Matmul& p, const sdk::LibraryRequest& request) const {
  cudaDataType_t type = vendor_types(p.dtype).blas;
  if (std::string why = refuses(p, request, tf32_); !why.empty()) throw Error(Code::declined, why);
  if (!tuner_ && (p.relu || request.gelu != sdk::Gelu::none))
    throw Error(Code::declined, "without autotuning it is not known whether its activation propagates NaN");
  int64_t batches = num_elements(p.batch);
  int64_t a_step = even_step(p.batch, p.a_batch), b_step = even_step(p.batch, p.b_batch);
  if (batches > INT32_MAX) throw Error(Code::declined, "more than 2^31 batches are not supported");
  bool fast = tf32_ && p.dtype == DType::f32;
  Asked asked{p, request, {}};
  cublasLtEpilogue_t epilogue = asked.epilogue();
  asked.description =
      fmt::format("cuBLASLt {} product {} {}x{}x{}{}{} batch {} steps {} {} epilogue {}{}", api_->cublasLtGetVersion(),
                  fast ? "tf32" : name(p.dtype), p.m, p.n, p.k, p.ta ? " ta" : "", p.tb ? " tb" : "", batches, a_step,
                  b_step, static_cast<int>(epilogue), asked.rounds() ? " in one kernel" : "");

  cublasLtMatmulDesc_t raw = nullptr;
  check(api_->cublasLtMatmulDescCreate(&raw, fast ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  Product::Desc desc(raw, api_->cublasLtMatmulDescDestroy);
  auto set = [&](cublasLtMatmulDescAttributes_t which, auto value) {
    check(api_->cublasLtMatmulDescSetAttribute(desc, which, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, p.tb ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, p.ta ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  // The ranking depends on the pointers' alignment, which is the same for all buffers; the actual pointers are set in
  // run().
  const void* aligned = reinterpret_cast<const void*>(buffer_alignment);
  if (p.bias || asked.sums()) {
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned);
  }
  if (asked.keeps()) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, type);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.n);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aligned);
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

  cublasLtMatmulPreference_t made = nullptr;
  check(api_->cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
  Owned preference(made, api_->cublasLtMatmulPreferenceDestroy);
  size_t most = most_workspace;
  // Partial sums, if any, are added in f32 in a fixed order.
  uint32_t schemes = asked.rounds() ? CUBLASLT_REDUCTION_SCHEME_NONE : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  check(api_->cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most),
        "the workspace's size");
  check(api_->cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                                   sizeof schemes),
        "the reductions");

  size_t buffers = asked.inputs() + asked.results();
  auto product = std::make_shared<Product>(api_, handle_, std::move(desc), std::move(a), std::move(b), std::move(y),
                                           std::move(asked));
  product->rank(made, rankings_);
  if (tuner_) tuner_->choose(*product, request);
  size_t workspace = product->workspace();
  return sdk::launch_of(std::shared_ptr<const Call>(std::move(product)), "cublasLt", buffers, workspace);
}

}  // namespace tutti::cuda
