#include "backends/cuda/cublas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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
constexpr int64_t wide_load = 16;            // bytes; tensor cores' kernels for other distances of rows are slow

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

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/// A row-major operand or result, and the distance of its rows in a copy; 0: none is made.
struct Matrix {
  int64_t rows, width, pitch = 0;

  uint64_t copied_bytes(DType t) const {
    return static_cast<uint64_t>(round_up(rows * pitch * static_cast<int64_t>(size_of(t)), buffer_alignment));
  }
};

/// a, b and y of a product.
std::array<Matrix, 3> matrices_of(const codegen::Matmul& p) {
  return {p.ta ? Matrix{p.k, p.m} : Matrix{p.m, p.k}, p.tb ? Matrix{p.n, p.k} : Matrix{p.k, p.n}, Matrix{p.m, p.n}};
}

/// The same with a pitch for those whose rows are no multiples of 16 bytes apart.
std::array<Matrix, 3> padded(std::array<Matrix, 3> matrices, DType t) {
  int64_t unit = wide_load / static_cast<int64_t>(size_of(t));
  for (Matrix& m : matrices)
    if (m.width % unit) m.pitch = round_up(m.width, unit);
  return matrices;
}

/// Whether a product is large enough for copies of its matrices, and these are small enough for the copier.
bool pays(const codegen::Matmul& p, double least) {
  bool indexed = true;
  for (const Matrix& m : matrices_of(p)) indexed = indexed && m.rows * (m.width + wide_load) < int64_t{1} << 31;
  return indexed && static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) >= least;
}

void require(const CublasApi& api, cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(Code::declined, fmt::format("{}: {}", call, api.cublasLtGetStatusString(status)));
}

/// The computation requested from the library.
struct Asked {
  codegen::Matmul shape;
  sdk::LibraryRequest request;
  std::string description;
  std::array<Matrix, 3> copies = {};  ///< a, b, y; without pitches if padding is not offered

  bool pads() const {
    return std::any_of(copies.begin(), copies.end(), [](const Matrix& m) { return m.pitch > 0; });
  }

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
  struct Layouts {
    Layout a, b, y;
  };

  /// `copied`: of the matrices with their pitches, if the copier is not null.
  Product(std::shared_ptr<const CublasApi> api, cublasLtHandle_t handle, Desc desc, Layouts given,
          std::optional<Layouts> copied, std::shared_ptr<const RowCopier> copier, Asked asked)
      : api_(std::move(api)),
        handle_(handle),
        desc_(std::move(desc)),
        given_(std::move(given)),
        copied_(std::move(copied)),
        copier_(std::move(copier)),
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
    const Found& chosen = found_[selected_];
    const Layouts& l = layouts(chosen);
    std::array<CUdeviceptr, 3> at = {buffers[0], buffers[1], buffers[y]};
    CUdeviceptr free = workspace() ? buffers[space] : 0;
    for (size_t k = 0; chosen.copied && k < at.size(); ++k) {
      const Matrix& m = asked_.copies[k];
      if (!m.pitch) continue;
      if (k < 2) copier_->run(stream, at[k], free, copy_of(m, m.width, m.pitch));
      at[k] = std::exchange(free, free + m.copied_bytes(asked_.shape.dtype));
    }
    auto raw = [](CUdeviceptr p) { return reinterpret_cast<void*>(p); };
    size_t bytes = chosen.result.workspaceSize;
    check(api_->cublasLtMatmul(handle_, desc_, &one, raw(at[1]), l.b, raw(at[0]), l.a, &zero, raw(at[2]), l.y,
                               raw(at[2]), l.y, &chosen.result.algo, bytes ? raw(free) : nullptr, bytes, stream));
    if (at[2] != buffers[y]) {
      const Matrix& m = asked_.copies[2];
      copier_->run(stream, at[2], buffers[y], copy_of(m, m.pitch, m.width));
    }
  }
  size_t inputs() const override { return asked_.inputs(); }

  /// Gets the library's rankings for this shape and selects the first algorithm: on copies, if they are offered.
  void rank(cublasLtMatmulPreference_t preference, std::map<std::string, Cublas::Ranking>& known) {
    auto add = [&](bool copied, const std::string& key) {
      auto at = known.find(key);
      if (at == known.end()) at = known.emplace(key, asked_for(preference, copied ? *copied_ : given_)).first;
      for (const auto& result : at->second) found_.push_back({result, copied});
    };
    try {
      if (copied_) add(true, asked_.description + " copied");
    } catch (const Error& e) {
      if (e.code != Code::declined) throw;
    }
    add(false, asked_.description);
  }

  // ---- Tunable
  size_t candidates() const override { return found_.size(); }
  void select(size_t candidate) override { selected_ = candidate; }
  size_t workspace() const override {
    size_t bytes = found_[selected_].result.workspaceSize;
    for (const Matrix& m : asked_.copies)
      if (found_[selected_].copied) bytes += m.copied_bytes(asked_.shape.dtype);
    return bytes;
  }
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
  /// The library's bytes; behind them one more if it runs on copies.
  std::vector<std::byte> saved() const override {
    auto at = std::as_bytes(std::span(&found_[selected_].result.algo, 1));
    std::vector<std::byte> bytes(at.begin(), at.end());
    if (found_[selected_].copied) bytes.push_back(std::byte{1});
    return bytes;
  }
  bool restore(std::span<const std::byte> algorithm) override {
    Found f;
    f.copied = algorithm.size() == sizeof f.result.algo + 1;
    if (algorithm.size() != sizeof f.result.algo + f.copied || (f.copied && !copied_)) return false;
    cublasLtMatmulAlgo_t algo;
    std::memcpy(&algo, algorithm.data(), sizeof algo);
    const Layouts& l = layouts(f);
    cublasStatus_t status = api_->cublasLtMatmulAlgoCheck(handle_, desc_, l.b, l.a, l.y, l.y, &algo, &f.result);
    if (status != CUBLAS_STATUS_SUCCESS || f.result.state != CUBLAS_STATUS_SUCCESS ||
        f.result.workspaceSize > most_workspace)
      return false;
    f.result.algo = algo;
    found_.push_back(f);
    selected_ = found_.size() - 1;
    return true;
  }

 private:
  struct Found {
    cublasLtMatmulHeuristicResult_t result = {};
    bool copied = false;  // runs on copies of the matrices that have a pitch
  };
  const Layouts& layouts(const Found& f) const { return f.copied ? *copied_ : given_; }
  static RowCopy copy_of(const Matrix& m, int64_t from_pitch, int64_t to_pitch) {
    return {static_cast<uint32_t>(m.rows), static_cast<uint32_t>(m.width), static_cast<uint32_t>(from_pitch),
            static_cast<uint32_t>(to_pitch)};
  }
  Cublas::Ranking asked_for(cublasLtMatmulPreference_t preference, const Layouts& l) const {
    Cublas::Ranking list(most_candidates);
    int found = 0;
    cublasStatus_t status = api_->cublasLtMatmulAlgoGetHeuristic(handle_, desc_, l.b, l.a, l.y, l.y, preference,
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
  Layouts given_;
  std::optional<Layouts> copied_;
  std::shared_ptr<const RowCopier> copier_;
  Asked asked_;
  std::vector<Found> found_;
  size_t selected_ = 0;
};

/// Layouts of a, b and y with the pitches of `matrices`, and these steps between the matrices of a batch.
Product::Layouts layouts_of(const CublasApi& api, const codegen::Matmul& p, const std::array<Matrix, 3>& matrices,
                            const std::array<int64_t, 3>& steps) {
  auto count = static_cast<int32_t>(num_elements(p.batch));
  auto layout = [&](size_t i) {
    const Matrix& m = matrices[i];
    cublasLtMatrixLayout_t l = nullptr;
    // Row-major [r, c] is column-major [c, r].
    require(api,
            api.cublasLtMatrixLayoutCreate(&l, vendor_types(p.dtype).blas, static_cast<uint64_t>(m.width),
                                           static_cast<uint64_t>(m.rows), m.pitch ? m.pitch : m.width),
            "cublasLtMatrixLayoutCreate");
    Product::Layout owned(l, api.cublasLtMatrixLayoutDestroy);
    require(api, api.cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
            "the batch's size");
    require(api,
            api.cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &steps[i],
                                                 sizeof steps[i]),
            "the batch's step");
    return owned;
  };
  return {layout(0), layout(1), layout(2)};
}

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

std::shared_ptr<const Cublas> Cublas::open(int driver_version, bool tf32, std::shared_ptr<Tuner> tuner,
                                           std::shared_ptr<const KernelMaker> kernels) {
  return std::make_shared<Cublas>(load(driver_version), tf32, std::move(tuner), std::move(kernels));
}

Cublas::Cublas(const CublasApi& api, bool tf32, std::shared_ptr<Tuner> tuner,
               std::shared_ptr<const KernelMaker> kernels, double least_copied)
    : api_(std::make_shared<CublasApi>(api)),
      tuner_(std::move(tuner)),
      kernels_(std::move(kernels)),
      tf32_(tf32),
      least_copied_(least_copied) {
  check(api_->cublasLtCreate(&handle_), "cublasLtCreate");
}

Cublas::~Cublas() { api_->cublasLtDestroy(handle_); }

std::string Cublas::version() const {
  size_t v = api_->cublasLtGetVersion();  // 130100 is 13.1.0
  return fmt::format("{}.{}", v / 10000, v / 100 % 100);
}

void Cublas::check(cublasStatus_t status, const char* call) const { require(*api_, status, call); }

std::shared_ptr<const RowCopier> Cublas::copier(size_t element_bytes) const {
  auto& known = copiers_[element_bytes];
  if (!known) known = std::make_shared<RowCopier>(*kernels_, element_bytes);
  return known;
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
  std::array<Matrix, 3> matrices = matrices_of(p);
  Asked asked{p, request, {}};
  if (kernels_ && request.trial && (fast || is_narrow(p.dtype)) && batches == 1 && !asked.keeps() &&
      pays(p, least_copied_))
    asked.copies = padded(matrices, p.dtype);
  cublasLtEpilogue_t epilogue = asked.epilogue();
  asked.description = fmt::format(
      "cuBLASLt {} product {} {}x{}x{}{}{} batch {} steps {} {} epilogue {}{}{}", api_->cublasLtGetVersion(),
      fast ? "tf32" : name(p.dtype), p.m, p.n, p.k, p.ta ? " ta" : "", p.tb ? " tb" : "", batches, a_step, b_step,
      static_cast<int>(epilogue), asked.rounds() ? " in one kernel" : "", asked.pads() ? ", or on copies" : "");

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

  std::shared_ptr<const RowCopier> copier;
  std::optional<Product::Layouts> copied;
  Product::Layouts given = layouts_of(*api_, p, matrices, {a_step, b_step, p.m * p.n});
  if (asked.pads()) {
    copier = this->copier(size_of(p.dtype));
    copied.emplace(layouts_of(*api_, p, asked.copies, {}));
  }

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
  auto product = std::make_shared<Product>(api_, handle_, std::move(desc), std::move(given), std::move(copied),
                                           std::move(copier), std::move(asked));
  product->rank(made, rankings_);
  if (tuner_) tuner_->choose(*product, request);
  size_t workspace = product->workspace();
  return sdk::launch_of(std::shared_ptr<const Call>(std::move(product)), "cublasLt", buffers, workspace);
}

}  // namespace tutti::cuda
