#include "backends/onednn/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/parallel.h"

namespace tutti::onednn {
namespace {

/// Below this number of operations a second oneDNN thread does not pay off (measured: 128x10x512 and 64x10x128 products
/// take 20 us on one thread, up to 11 ms on two of a busy machine).
constexpr double worth_threads = 4e6;

}  // namespace

const dnnl::engine& engine() {
  static const auto& one = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return one;
}

const dnnl::stream& stream() {
  static const auto& one = *new dnnl::stream(engine());
  return one;
}

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr a;
  a.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return a;
}

int threads_for(double operations, int threads) { return operations < worth_threads ? 1 : threads; }

MatchResult expect_inputs(const NodeView& c, size_t count) {
  size_t have = c.node().inputs.size();
  return have == count ? "" : fmt::format("{} inputs, expected {}", have, count);
}

MatchResult expect_counted(const NodeView& c) {
  for (uint32_t v : c.node().inputs)
    for (int64_t d : c.program.type(v).shape)
      if (d > std::numeric_limits<int32_t>::max())
        return fmt::format("{}: dimensions above 2^31 - 1 are not supported", to_string(c.program.type(v)));
  return "";
}

MatchResult expect_result(const NodeView& c, size_t k, const TensorType& want) {
  if (!c.wants(k) || c.out(k) == want) return "";
  return fmt::format("result {} is {}, expected {}", k, to_string(c.out(k)), to_string(want));
}

MatchResult declines_dtype(DType t) {
  if (t == DType::f32 || is_narrow(t)) return "";
  return "dtype " + std::string(name(t));
}

// ---- functions

FunctionKernel::FunctionKernel(const NodeView& c, Run run, size_t scratch_bytes) : run_(std::move(run)) {
  for (uint32_t v : c.node().inputs) in.push_back(plain_layout(c.program.type(v)));
  for (uint32_t v : c.node().results) out.push_back(v == TUTTI_NONE ? Layout{} : plain_layout(c.program.type(v)));
  scratch = scratch_bytes;
}

void FunctionKernel::bind(std::span<void* const> in, std::span<void* const> out, std::byte* scratch) {
  in_.assign(in.begin(), in.end());
  out_.assign(out.begin(), out.end());
  scratch_ = scratch;
}

// ---- primitives

PrimitiveKernel::PrimitiveKernel(const dnnl::primitive_desc_base& pd, std::vector<Argument> arguments, int threads,
                                 int session_threads)
    : primitive_(pd.get()),
      arguments_(std::move(arguments)),
      scratchpad_(pd.scratchpad_desc()),
      threads_(threads),
      session_threads_(session_threads) {
  scratch = scratchpad_.get_size();
  implementation = pd.impl_info_str();
}

void PrimitiveKernel::bind(std::span<void* const> in, std::span<void* const> out, std::byte* scratch) {
  for (const Argument& a : arguments_) memories_.emplace_back(a.desc, engine(), a.result ? out[a.slot] : in[a.slot]);
  for (size_t k = 0; k < arguments_.size(); ++k) bound_.push_back({arguments_[k].id, memories_[k].get()});
  if (scratchpad_.get_size() == 0) return;
  memories_.emplace_back(scratchpad_, engine(), scratch);
  bound_.push_back({DNNL_ARG_SCRATCHPAD, memories_.back().get()});
}

void PrimitiveKernel::run() {
  if (threads_ != session_threads_) OpenMp::get().set_threads(threads_);
  auto status =
      dnnl_primitive_execute(primitive_.get(), stream().get(), static_cast<int>(bound_.size()), bound_.data());
  if (threads_ != session_threads_) OpenMp::get().set_threads(session_threads_);
  if (status != dnnl_success)
    throw Error(Code::internal, fmt::format("oneDNN failed with status {}", static_cast<int>(status)));
}

namespace {

/// A kernel that calls a function and does not belong to a node.
class CopyKernel : public Kernel {
 public:
  CopyKernel(Layout from, Layout to, std::function<void(const void*, void*)> run) : run_(std::move(run)) {
    in = {std::move(from)};
    out = {std::move(to)};
  }
  void bind(std::span<void* const> in, std::span<void* const> out, std::byte*) override {
    from_ = in[0];
    to_ = out[0];
  }
  void run() override { run_(from_, to_); }

 private:
  std::function<void(const void*, void*)> run_;
  void *from_ = nullptr, *to_ = nullptr;
};

}  // namespace

KernelPtr make_plain_copy(const TensorType& t, int threads) {
  auto bytes = static_cast<int64_t>(num_bytes(t));
  Layout layout = plain_layout(t);
  return std::make_unique<CopyKernel>(layout, layout, [bytes, threads](const void* x, void* y) {
    kernels::share(bytes, bytes / 8, threads, [&](int64_t first, int64_t last, int) {
      std::memcpy(static_cast<char*>(y) + first, static_cast<const char*>(x) + first,
                  static_cast<size_t>(last - first));
    });
  });
}

KernelPtr make_zero(const NodeView& c) {
  size_t bytes = num_bytes(c.out(0));
  return std::make_unique<FunctionKernel>(
      c, [bytes](void* const*, void* const* out, std::byte*) { std::memset(out[0], 0, bytes); });
}

KernelPtr make_reorder(const TensorType& t, const Layout& from, const Layout& to, int threads) {
  // A plain layout is described with the other side's dimensions, because weights with groups have one more dimension.
  Desc source = from.plain && !to.plain ? plain_desc(data_type(t.dtype), to.desc.get_dims()) : from.desc;
  Desc target = to.plain && !from.plain ? plain_desc(data_type(t.dtype), from.desc.get_dims()) : to.desc;
  int used = threads_for(static_cast<double>(num_elements(t.shape)) * 64, threads);
  ThreadScope scope(used);
  dnnl::reorder::primitive_desc pd(engine(), source, engine(), target, attributes());
  auto kernel = std::make_unique<PrimitiveKernel>(
      pd, std::vector<PrimitiveKernel::Argument>{{DNNL_ARG_FROM, false, 0, source}, {DNNL_ARG_TO, true, 0, target}},
      used, threads);
  kernel->in = {from};
  kernel->out = {to};
  return kernel;
}

// ---- the list

const std::vector<Entry>& kernel_list() {
  static const std::vector<Entry> list = [] {
    std::vector<Entry> all;
    for (auto part : {matmul_entries(), conv_entries(), pool_entries(), softmax_entries(), norm_entries(),
                      recurrent_entries(), attention_entries(), reduce_entries(), copy_entries(), index_entries(),
                      quantized_entries(), exchange_entries(), elementwise_entries()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return list;
}

KernelPtr make_kernel(const Entry& entry, const NodeView& c) try {
  return entry.make(c);
} catch (const dnnl::error& e) {
  throw sdk::NodeError(c.number, e.status == dnnl_out_of_memory ? Code::no_memory : Code::compile,
                       fmt::format("{}: oneDNN: {}", entry.name, e.what()), "use a smaller batch or model");
}

KernelPtr try_make(const Entry& entry, const NodeView& c) try { return entry.make(c); } catch (const dnnl::error&) {
  return nullptr;
}

Choice choose_kernel(const NodeView& c) try {
  if (auto why = sdk::declines_node(c.program, c.node(), true); !why.empty()) return Choice::none("onednn", why);
  static const std::vector<Entry> exact = sdk::exact_entries(kernel_list());
  return sdk::choose(c.program.numerics == TUTTI_EXACT ? exact : kernel_list(), c.node().op, c, "onednn");
} catch (const Error& e) {  // a missing or invalid attribute
  return Choice::none("onednn", e.what());
}

}  // namespace tutti::onednn
