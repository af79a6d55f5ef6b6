#include "backends/cuda/cudnn_graph.h"

#include <cudnn_frontend.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <unordered_map>
#include <utility>

#include "backends/cuda/open.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // declared there: where it looks for cuDNN's functions
}

namespace tutti::cuda {

namespace fe = cudnn_frontend;
using fe::graph::Graph;

struct BuiltGraph {
  Graph graph;
  std::vector<int64_t> plans;  ///< those that were built, the fastest by cuDNN's heuristics first
};

namespace {

constexpr int64_t alignment = 16;  // bytes, of all tensors: cuDNN's default

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

/// Tells a tensor of the graph where it lies, and its number.
void place(fe::graph::Tensor_attributes& t, const GraphTensor& at, int64_t uid) {
  t.set_uid(uid).set_data_type(data_type(at.lies.dtype));
  t.set_dim({at.dims.begin(), at.dims.end()}).set_stride({at.lies.strides.begin(), at.lies.strides.end()});
}

/// The tensors, whose numbers are their places in this list plus one.
std::vector<GraphTensor> all_of(const GraphWork& work) {
  std::vector<GraphTensor> all = work.reads;
  all.insert(all.end(), work.writes.begin(), work.writes.end());
  return all;
}
int64_t uid(size_t place) { return static_cast<int64_t>(place) + 1; }

std::string description_of(const GraphWork& work) {
  std::string text = work.kind;
  for (const GraphTensor& t : all_of(work))
    text += fmt::format(" [{}]/[{}]", fmt::join(t.dims, ","), fmt::join(t.lies.strides, ","));
  return text;
}

/// Bytes of each buffer, to the end of the last element; 4 bytes where no tensor lies.
std::vector<uint64_t> bytes_of(const GraphWork& work) {
  std::vector<uint64_t> bytes;
  for (const GraphTensor& t : all_of(work)) {
    int64_t last = t.lies.offset;
    for (size_t d = 0; d < 4; ++d) last += (t.dims[d] - 1) * t.lies.strides[d];
    size_t element = size_of(t.lies.dtype);
    if (static_cast<int64_t>(element) * t.lies.offset % alignment != 0)
      throw Error(Code::declined, "an operand does not start at a multiple of 16 bytes");
    bytes.resize(std::max(bytes.size(), t.buffer + 1), 4);
    bytes[t.buffer] = std::max(bytes[t.buffer], static_cast<uint64_t>(last + 1) * element);
  }
  return bytes;
}

void define(Graph& graph, const GraphTarget& target, const GraphWork& work) {
  graph.set_io_data_type(data_type(work.reads[0].lies.dtype))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT)
      .set_sm_version(target.capability);
  if (!target.handle) {
    auto device = std::make_shared<fe::DeviceProperties>();
    check(device->deserialize({target.properties.begin(), target.properties.end()}));
    graph.set_device_properties(device);
  }
  std::vector<GraphWork::Node> in;
  for (const GraphTensor& t : work.reads) {
    fe::graph::Tensor_attributes attributes;
    place(attributes, t, uid(in.size()));
    in.push_back(graph.tensor(attributes));
  }
  std::vector<GraphWork::Node> out = work.define(graph, in);
  for (size_t k = 0; k < out.size(); ++k) place(out[k]->set_output(true), work.writes[k], uid(work.reads.size() + k));
}

/// Builds the plans that the work allows.
void build(BuiltGraph& built, const GraphTarget& target, const GraphWork& work) {
  using Note = fe::NumericalNote_t;
  Graph& graph = built.graph;
  check(graph.validate());
  check(target.handle ? graph.build_operation_graph(target.handle) : graph.build_operation_graph());
  check(graph.create_execution_plans({fe::HeurMode_t::A}));
  graph.deselect_numeric_notes({Note::NONDETERMINISTIC});
  if (work.sums_products)
    graph.deselect_numeric_notes({Note::WINOGRAD, Note::WINOGRAD_TILE_4x4, Note::WINOGRAD_TILE_6x6,
                                  Note::WINOGRAD_TILE_13x13, Note::FFT, Note::REDUCED_PRECISION_REDUCTION,
                                  Note::DOWN_CONVERT_INPUTS});
  if (work.built_in) graph.deselect_behavior_notes({fe::BehaviorNote_t::RUNTIME_COMPILATION});
  graph.deselect_workspace_greater_than(work.most_space);
  check(graph.check_support());
  fe::error_t last;
  for (int64_t k = 0; k < graph.get_execution_plan_count() && built.plans.size() < work.most_plans; ++k) {
    last = graph.build_plan_at_index(k);
    if (last.is_good()) built.plans.push_back(k);
  }
  if (built.plans.empty()) check(last);
  if (built.plans.empty()) throw Error(Code::declined, "cuDNN has no plan for this graph");
}

class GraphCall : public Tunable {
 public:
  GraphCall(std::shared_ptr<const CudnnApi> api, cudnnHandle_t handle, std::shared_ptr<BuiltGraph> built,
            const GraphWork& work, std::vector<uint64_t> buffer_bytes, std::string description)
      : api_(std::move(api)),
        handle_(handle),
        built_(std::move(built)),
        tensors_(all_of(work)),
        buffer_bytes_(std::move(buffer_bytes)),
        description_(std::move(description)),
        activates_(work.activates) {
    auto earlier = [](const GraphTensor& a, const GraphTensor& b) { return a.buffer < b.buffer; };
    inputs_ = std::min_element(work.writes.begin(), work.writes.end(), earlier)->buffer;
  }

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
  DType dtype() const override { return tensors_[0].lies.dtype; }
  bool activates() const override { return activates_; }
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
  std::vector<GraphTensor> tensors_;
  std::vector<uint64_t> buffer_bytes_;
  std::string description_;
  bool activates_;
  size_t inputs_ = 0;
  size_t selected_ = 0;
};

}  // namespace

CudnnGraphs::CudnnGraphs(std::shared_ptr<const CudnnApi> api, GraphTarget target)
    : api_(std::move(api)), target_(std::move(target)) {
  fe::cudnn_dlhandle = api_->library;
  // cudnn-frontend opens the CUDA runtime by name, to fill workspaces; one that is open already is found anywhere.
  std::string why;
  open_first(library_names("cudart", {"13", "12"}), why);
}

std::shared_ptr<BuiltGraph> CudnnGraphs::built(const std::string& description, const GraphWork& work) const {
  std::lock_guard hold(lock_);
  std::shared_ptr<BuiltGraph>& kept = built_[description];
  if (kept) return kept;
  try {
    auto made = std::make_shared<BuiltGraph>();
    define(made->graph, target_, work);
    build(*made, target_, work);
    return kept = made;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {  // cudnn-frontend: a function that the library lacks
    throw Error(Code::declined, fmt::format("cuDNN: {}", e.what()));
  }
}

std::shared_ptr<Tunable> CudnnGraphs::call(const GraphWork& work) const {
  if (target_.capability < 80)
    throw Error(Code::declined, fmt::format("cuDNN's graphs are used from compute capability 8.0 on, not on {}.{}",
                                            target_.capability / 10, target_.capability % 10));
  std::string description = description_of(work);
  std::vector<uint64_t> bytes = bytes_of(work);
  return std::make_shared<GraphCall>(api_, target_.handle, built(description, work), work, bytes, description);
}

}  // namespace tutti::cuda
