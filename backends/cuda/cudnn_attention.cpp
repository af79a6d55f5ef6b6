#include "backends/cuda/cudnn_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/cuda/open.h"

#ifdef TUTTI_CUDNN_FRONTEND
#include <cudnn_frontend.h>

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // declared there: where it looks for cuDNN's functions
}
#endif

namespace tutti::cuda {

#ifndef TUTTI_CUDNN_FRONTEND

namespace {
Error missing() {
  return {Code::declined, "Tutti was built without cudnn-frontend",
          "run scripts/deps.sh --cuda before building, which fetches it"};
}
}  // namespace

CudnnAttention::CudnnAttention(std::shared_ptr<const CudnnApi> api, GraphTarget target)
    : api_(std::move(api)), target_(std::move(target)) {}
std::shared_ptr<Tunable> CudnnAttention::forward(const codegen::Attention&, bool) const { throw missing(); }
std::shared_ptr<Tunable> CudnnAttention::backward(const codegen::Attention&) const { throw missing(); }

#else

namespace fe = cudnn_frontend;
using Graph = fe::graph::Graph;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

struct BuiltGraph {
  Graph graph;
  std::vector<int64_t> plans;  ///< those that were built, the fastest by cuDNN's heuristics first
};

namespace {

constexpr int64_t alignment = 16;  // bytes, of all tensors: cuDNN's default
// Deterministic gradients sum dq from one copy per 128 keys: more than convolutions need.
constexpr int64_t most_space = int64_t{1} << 30;

/// A tensor of the graph, whose uid is its index in the list plus one, and where it lies.
struct Bound {
  codegen::Operand lies;
  std::array<int64_t, 4> dims;
  size_t buffer;
};

void check(fe::error_t e) {
  if (e.is_good()) return;
  std::string text = e.get_message();
  std::replace(text.begin(), text.end(), '\n', ' ');
  throw Error(Code::declined,
              fmt::format("cuDNN: {}", text.empty() ? "no engine supports the graph" : text.substr(0, 300)));
}

fe::DataType_t data_type(DType t) {
  if (t == DType::f16) return fe::DataType_t::HALF;
  if (t == DType::bf16) return fe::DataType_t::BFLOAT16;
  if (t == DType::f32) return fe::DataType_t::FLOAT;
  throw Error(Code::declined, fmt::format("dtype {} is not supported", name(t)));
}

/// Strides as cuDNN wants them: positive in dimensions of one element, where any will do.
std::vector<int64_t> strides_of(const Bound& b) {
  std::vector<int64_t> strides(4, 1);
  for (size_t d = 4; d-- > 0;) {
    int64_t dense = d == 3 ? 1 : strides[d + 1] * b.dims[d + 1];
    strides[d] = b.dims[d] == 1 ? dense : b.lies.strides[d];
  }
  return strides;
}

int64_t uid(size_t index) { return static_cast<int64_t>(index) + 1; }

fe::graph::Tensor_attributes attributes(const std::vector<Bound>& tensors, size_t index) {
  const Bound& b = tensors[index];
  fe::graph::Tensor_attributes t;
  t.set_uid(uid(index)).set_data_type(data_type(b.lies.dtype)).set_stride(strides_of(b));
  t.set_dim({b.dims.begin(), b.dims.end()});
  return t;
}

void make_result(const Tensor& t, const std::vector<Bound>& tensors, size_t index) {
  const Bound& b = tensors[index];
  t->set_output(true).set_uid(uid(index)).set_data_type(data_type(b.lies.dtype)).set_stride(strides_of(b));
  t->set_dim({b.dims.begin(), b.dims.end()});
}

void check_shape(const codegen::Attention& a) {
  if (a.dtype != DType::f16 && a.dtype != DType::bf16)
    throw Error(Code::declined, fmt::format("cuDNN's attention supports f16 and bf16, not {}", name(a.dtype)));
  if (a.mask) throw Error(Code::declined, "cuDNN's attention is not used with masks");
  if (a.dropout > 0) throw Error(Code::declined, "cuDNN's dropout draws other random numbers");
  if (std::min({a.batch, a.heads, a.rows, a.keys, a.depth, a.width}) == 0)
    throw Error(Code::declined, "an input has no elements");
}

/// The tensors of attention: q, k, v in the buffers 0 to 2, y, and lse.
std::vector<Bound> tensors_of(const codegen::Attention& a, const codegen::Operand& y, size_t y_buffer,
                              size_t lse_buffer) {
  return {{a.at[0], {a.batch, a.heads, a.rows, a.depth}, 0},
          {a.at[1], {a.batch, a.key_heads, a.keys, a.depth}, 1},
          {a.at[2], {a.batch, a.key_heads, a.keys, a.width}, 2},
          {y, {a.batch, a.heads, a.rows, a.width}, y_buffer},
          {{DType::f32, {a.heads * a.rows, a.rows, 1, 1}}, {a.batch, a.heads, a.rows, 1}, lse_buffer}};
}

/// What both directions are told; causal: query i attends to keys 0 to i.
template <class Attributes>
Attributes options(const codegen::Attention& a) {
  Attributes o;
  o.set_name("attention").set_attn_scale(static_cast<float>(a.scale));
  if (a.causal) o.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
  return o;
}

std::string description_of(const codegen::Attention& a, const char* kind, const std::vector<Bound>& tensors) {
  std::string text = fmt::format("{} {} scale {}{}", kind, name(a.dtype), a.scale, a.causal ? " causal" : "");
  for (const Bound& b : tensors)
    text += fmt::format(" [{}]/[{}]", fmt::join(b.dims, ","), fmt::join(strides_of(b), ","));
  return text;
}

std::shared_ptr<BuiltGraph> begin(const GraphTarget& target, DType dtype) {
  auto built = std::make_shared<BuiltGraph>();
  built->graph.set_io_data_type(data_type(dtype))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT)
      .set_sm_version(target.capability);
  if (!target.handle) {
    auto device = std::make_shared<fe::DeviceProperties>();
    check(device->deserialize({target.properties.begin(), target.properties.end()}));
    built->graph.set_device_properties(device);
  }
  return built;
}

/// Builds all plans that are deterministic and need little memory.
void finish(BuiltGraph& built, const GraphTarget& target) {
  Graph& graph = built.graph;
  check(graph.validate());
  check(target.handle ? graph.build_operation_graph(target.handle) : graph.build_operation_graph());
  check(graph.create_execution_plans({fe::HeurMode_t::A}));
  graph.deselect_numeric_notes({fe::NumericalNote_t::NONDETERMINISTIC});
  graph.deselect_workspace_greater_than(most_space);
  check(graph.check_support());
  fe::error_t last;
  for (int64_t k = 0; k < graph.get_execution_plan_count(); ++k) {
    last = graph.build_plan_at_index(k);
    if (last.is_good()) built.plans.push_back(k);
  }
  if (built.plans.empty()) check(last);
  if (built.plans.empty()) throw Error(Code::declined, "cuDNN has no plan for this attention");
}

class GraphCall : public Tunable {
 public:
  GraphCall(std::shared_ptr<const CudnnApi> api, cudnnHandle_t handle, std::shared_ptr<BuiltGraph> built,
            std::vector<Bound> tensors, size_t inputs, std::vector<uint64_t> buffer_bytes, std::string description)
      : api_(std::move(api)),
        handle_(handle),
        built_(std::move(built)),
        tensors_(std::move(tensors)),
        inputs_(inputs),
        buffer_bytes_(std::move(buffer_bytes)),
        description_(std::move(description)),
        dtype_(tensors_[0].lies.dtype) {}

  void run(CUstream stream, std::span<const CUdeviceptr> buffers) const override {
    if (api_->cudnnSetStream(handle_, stream) != CUDNN_STATUS_SUCCESS)
      throw Error(Code::internal, "cuDNN: cudnnSetStream failed");
    std::unordered_map<int64_t, void*> at;
    for (size_t k = 0; k < tensors_.size(); ++k) {
      const codegen::Operand& lies = tensors_[k].lies;
      auto offset = static_cast<CUdeviceptr>(lies.offset) * size_of(lies.dtype);
      at[uid(k)] = reinterpret_cast<void*>(buffers[tensors_[k].buffer] + offset);
    }
    void* space = workspace() ? reinterpret_cast<void*>(buffers[buffer_bytes_.size()]) : nullptr;
    std::string why;
    try {
      why = built_->graph.execute_plan_at_index(handle_, at, space, plan()).get_message();
    } catch (const std::exception& e) {  // cudnn-frontend: no CUDA runtime
      why = e.what();
    }
    if (!why.empty()) throw Error(Code::internal, fmt::format("cuDNN: {}: {}", description_, why));
  }
  void leave_stream() const override { api_->cudnnSetStream(handle_, nullptr); }
  size_t inputs() const override { return inputs_; }

  size_t candidates() const override { return built_->plans.size(); }
  void select(size_t candidate) override { selected_ = candidate; }
  size_t workspace() const override {
    return static_cast<size_t>(std::max<int64_t>(built_->graph.get_workspace_size_plan_at_index(plan()), 0));
  }
  std::vector<uint64_t> buffer_bytes() const override { return buffer_bytes_; }
  DType dtype() const override { return dtype_; }
  bool activates() const override { return false; }
  std::string description() const override { return fmt::format("cuDNN {} {}", api_->cudnnGetVersion(), description_); }
  std::vector<std::byte> saved() const override {
    std::string name = name_of(selected_);
    auto bytes = std::as_bytes(std::span(name));
    return {bytes.begin(), bytes.end()};
  }
  bool restore(std::span<const std::byte> plan) override {
    std::string wanted(reinterpret_cast<const char*>(plan.data()), plan.size());
    for (size_t k = 0; k < candidates(); ++k)
      if (name_of(k) == wanted) return selected_ = k, true;
    return false;
  }

 private:
  int64_t plan() const { return built_->plans[selected_]; }
  std::string name_of(size_t candidate) const {
    std::string name;
    check(built_->graph.get_plan_name_at_index(built_->plans[candidate], name));
    return name;
  }

  std::shared_ptr<const CudnnApi> api_;
  cudnnHandle_t handle_;
  std::shared_ptr<BuiltGraph> built_;
  std::vector<Bound> tensors_;
  size_t inputs_;
  std::vector<uint64_t> buffer_bytes_;
  std::string description_;
  DType dtype_;
  size_t selected_ = 0;
};

/// Bytes of each buffer, to the end of the last element; 4 bytes where no tensor lies.
std::vector<uint64_t> bytes_of(const std::vector<Bound>& tensors) {
  std::vector<uint64_t> bytes;
  for (const Bound& b : tensors) {
    int64_t last = b.lies.offset;
    for (size_t d = 0; d < 4; ++d) last += (b.dims[d] - 1) * b.lies.strides[d];
    size_t element = size_of(b.lies.dtype);
    if (static_cast<int64_t>(element) * b.lies.offset % alignment != 0)
      throw Error(Code::declined, "an operand does not start at a multiple of 16 bytes");
    bytes.resize(std::max(bytes.size(), b.buffer + 1), 4);
    bytes[b.buffer] = std::max(bytes[b.buffer], static_cast<uint64_t>(last + 1) * element);
  }
  return bytes;
}

}  // namespace

CudnnAttention::CudnnAttention(std::shared_ptr<const CudnnApi> api, GraphTarget target)
    : api_(std::move(api)), target_(std::move(target)) {
  fe::cudnn_dlhandle = api_->library;
  // cudnn-frontend opens the CUDA runtime by name, to fill workspaces; one that is open already is found anywhere.
  std::string why;
  open_first(library_names("cudart", {"13", "12"}), why);
}

std::shared_ptr<BuiltGraph> CudnnAttention::built(const std::string& description, DType dtype,
                                                  const std::function<void(BuiltGraph&)>& define) const {
  std::lock_guard hold(lock_);
  std::shared_ptr<BuiltGraph>& kept = built_[description];
  if (kept) return kept;
  try {
    std::shared_ptr<BuiltGraph> made = begin(target_, dtype);
    define(*made);
    finish(*made, target_);
    return kept = made;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {  // cudnn-frontend: a function that the library lacks
    throw Error(Code::declined, fmt::format("cuDNN: {}", e.what()));
  }
}

std::shared_ptr<Tunable> CudnnAttention::forward(const codegen::Attention& a, bool lse) const {
  check_shape(a);
  std::vector<Bound> tensors = tensors_of(a, a.to[0], 3, 4);
  if (!lse) tensors.pop_back();
  std::string description = description_of(a, "attention", tensors);
  std::vector<uint64_t> bytes = bytes_of(tensors);
  auto define = [&](BuiltGraph& built) {
    std::vector<Tensor> in;
    for (size_t k = 0; k < 3; ++k) in.push_back(built.graph.tensor(attributes(tensors, k)));
    auto o = options<fe::graph::SDPA_attributes>(a).set_generate_stats(lse);
    auto [y, stats] = built.graph.sdpa(in[0], in[1], in[2], o);
    make_result(y, tensors, 3);
    if (lse) make_result(stats, tensors, 4);
  };
  return std::make_shared<GraphCall>(api_, target_.handle, built(description, a.dtype, define), tensors, 3, bytes,
                                     description);
}

std::shared_ptr<Tunable> CudnnAttention::backward(const codegen::Attention& a) const {
  check_shape(a);
  if (!a.y) throw Error(Code::declined, "cuDNN computes gradients of attention from y, which is not given");
  std::vector<Bound> tensors = tensors_of(a, *a.y, 6, 4);
  tensors.push_back({a.at[3], tensors[3].dims, 3});
  for (size_t k = 0; k < 3; ++k) tensors.push_back({a.to[k], tensors[k].dims, 7 + k});
  std::string description = description_of(a, "gradient of attention", tensors);
  std::vector<uint64_t> bytes = bytes_of(tensors);
  auto define = [&](BuiltGraph& built) {
    std::vector<Tensor> in;
    for (size_t k = 0; k < 6; ++k) in.push_back(built.graph.tensor(attributes(tensors, k)));
    auto o = options<fe::graph::SDPA_backward_attributes>(a).set_deterministic_algorithm(true);
    auto [dq, dk, dv] = built.graph.sdpa_backward(in[0], in[1], in[2], in[3], in[5], in[4], o);
    make_result(dq, tensors, 6);
    make_result(dk, tensors, 7);
    make_result(dv, tensors, 8);
  };
  return std::make_shared<GraphCall>(api_, target_.handle, built(description, a.dtype, define), tensors, 7, bytes,
                                     description);
}

#endif

}  // namespace tutti::cuda
