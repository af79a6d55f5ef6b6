// Kernels. A node is run by a kernel of the first entry in the ordered list that accepts the node.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/onednn/layout.h"
#include "backends/onednn/openmp.h"
#include "core/base/rounding.h"
#include "sdk/kernel_list.h"
#include "sdk/plan/patterns.h"
#include "sdk/program.h"

namespace tutti::onednn {

/// Size of a workspace part, rounded up to whole cache lines.
constexpr size_t aligned(size_t bytes) { return align_up(bytes, size_t{64}); }

/// Operations on a kernel's result before it is stored. (`max(…, 0)` is not fused into products and convolutions:
/// oneDNN's relu turns NaN into 0, which would hide a diverging run.)
struct Epilogue {
  uint32_t bias = TUTTI_NONE;  ///< a value added along the last axis (matmul) or the channels (conv2d); NONE: no bias
  std::optional<sdk::Limits> limits = {};  ///< for normalizations
};

/// The view of a node for entries.
struct NodeView {
  const sdk::Program& program;
  uint32_t number;
  int threads;
  std::vector<Layout> layouts = {};  ///< the inputs' current layouts; empty if only acceptance is checked
  Epilogue epilogue = {};            ///< a bias is the kernel's last input
  bool sums_gradient = false;  ///< conv2d_dw: a second result is the sum of the cotangent over all but the channels

  const sdk::Node& node() const { return program.nodes[number]; }
  const TensorType& in(size_t k) const { return program.type(node().inputs[k]); }
  /// Unused results have no type: see wants().
  const TensorType& out(size_t k) const { return program.type(node().results[k]); }
  bool wants(size_t k) const { return k < node().results.size() && node().results[k] != TUTTI_NONE; }
  Layout layout(size_t k) const { return layouts.empty() ? plain_layout(in(k)) : layouts[k]; }
};

/// A prepared computation with fixed layouts, and fixed addresses once bound. `in` and `out` have one layout per input
/// and result of the node (or group), without unused results.
class Kernel {
 public:
  virtual ~Kernel() = default;
  std::vector<Layout> in, out;
  size_t scratch = 0;       ///< workspace bytes for run()
  bool overwrites = false;  ///< the first result may overwrite the first input
  /// OneDNN's implementation or the instruction set: "brgemm:avx512_core"; "": unknown.
  std::string implementation = {};
  /// Called once, after allocation. `out` is null for unused results.
  virtual void bind(std::span<void* const> in, std::span<void* const> out, std::byte* scratch) = 0;
  virtual void run() = 0;
};

using KernelPtr = std::unique_ptr<Kernel>;
using Entry = sdk::Entry<NodeView, KernelPtr>;
using Choice = sdk::Choice<NodeView, KernelPtr>;
using ChoiceCache = sdk::ChoiceCache<NodeView, KernelPtr>;
using sdk::MatchResult;

/// The ordered list: oneDNN's primitives first, then the kernels of kernels/.
const std::vector<Entry>& kernel_list();
/// Chooses an entry for a node, after checking its numerics, version and attributes.
Choice choose_kernel(const NodeView& c);

/// Makes the entry's kernel. Throws NodeError if oneDNN cannot make it, usually for lack of memory.
KernelPtr make_kernel(const Entry& entry, const NodeView& c);
/// The same, or null if oneDNN has no implementation: for kernels with fused operations.
KernelPtr try_make(const Entry& entry, const NodeView& c);

/// A kernel that calls a function with the bound addresses. All layouts are plain unless changed.
class FunctionKernel : public Kernel {
 public:
  using Run = std::function<void(void* const* in, void* const* out, std::byte* scratch)>;
  FunctionKernel(const NodeView& c, Run run, size_t scratch_bytes = 0);
  void bind(std::span<void* const> in, std::span<void* const> out, std::byte* scratch) override;
  void run() override { run_(in_.data(), out_.data(), scratch_); }

 private:
  Run run_;
  std::vector<void*> in_, out_;
  std::byte* scratch_ = nullptr;
};

/// A kernel that runs one oneDNN primitive. Arguments map inputs and results to the primitive's arguments.
class PrimitiveKernel : public Kernel {
 public:
  struct Argument {
    int id;         ///< DNNL_ARG_…
    bool result;    ///< a result, else an input
    uint32_t slot;  ///< its index
    Desc desc;      ///< descriptor for the primitive
  };
  /// `threads`: number of threads for the primitive (small problems are slower on several).
  PrimitiveKernel(const dnnl::primitive_desc_base& pd, std::vector<Argument> arguments, int threads,
                  int session_threads);
  void bind(std::span<void* const> in, std::span<void* const> out, std::byte* scratch) override;
  void run() override;

 private:
  dnnl::primitive primitive_;
  std::vector<Argument> arguments_;
  Desc scratchpad_;
  int threads_, session_threads_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> bound_;
};

/// Hands the result of a node "tutti.exchange" to the host, in place of the input's memory where possible.
class ExchangeKernel : public Kernel {
 public:
  explicit ExchangeKernel(const NodeView& c);
  void bind(std::span<void* const> in, std::span<void* const> out, std::byte* scratch) override;
  void run() override;
  std::function<void(uint64_t number, void* data, uint64_t bytes)> exchange;

 private:
  uint64_t number_, bytes_;
  const void* in_ = nullptr;
  void* out_ = nullptr;
};

/// oneDNN's CPU engine and in-order stream of this process.
const dnnl::engine& engine();
const dnnl::stream& stream();
/// Attributes of all primitives: the caller provides scratch memory.
dnnl::primitive_attr attributes();

/// Number of threads for a problem with `operations` FLOPs: one if more do not pay off.
int threads_for(double operations, int threads);

/// Copies a value from one layout to another.
KernelPtr make_reorder(const TensorType& t, const Layout& from, const Layout& to, int threads);
/// Copies bytes in row-major order, for any dtype.
KernelPtr make_plain_copy(const TensorType& t, int threads);
/// Writes zeros: the result of products with an empty inner dimension.
KernelPtr make_zero(const NodeView& c);

/// "" or a mismatch in the number of inputs, or in the type of result k (`want`).
MatchResult expect_inputs(const NodeView& c, size_t count);
/// "" or a dimension is too large: oneDNN's products compute with 32-bit dimensions and fail (division by zero or
/// worse) beyond.
MatchResult expect_counted(const NodeView& c);
MatchResult expect_result(const NodeView& c, size_t k, const TensorType& want);
/// "" or the reason why oneDNN's primitives do not support the type on this machine (f32, bf16, f16).
MatchResult declines_dtype(DType t);
/// "" or the reason why a primitive cannot be created; `f` creates its descriptor, which may be empty.
template <class F>
MatchResult declines_primitive(F&& f) {
  try {
    return f() ? "" : "oneDNN has no implementation for this node";
  } catch (const dnnl::error& e) {
    return e.what();
  }
}
/// Whether a primitive of type `t` is oneDNN's reference implementation and should be avoided: for f16 and bf16 it is a
/// thousand times slower than the entries that compute in f32.
template <class Pd>
bool is_slow_reference(DType t, const Pd& pd) {
  return t != DType::f32 && std::string_view(pd.impl_info_str()).starts_with("ref");
}
/// declines_primitive for such an op.
template <class F>
MatchResult declines_primitive(DType t, F&& f) {
  std::string used;
  MatchResult why = declines_primitive([&] {
    auto pd = f();
    if (pd && is_slow_reference(t, pd)) used = pd.impl_info_str();
    return static_cast<bool>(pd);
  });
  if (!why.empty() || used.empty()) return why;
  return "oneDNN has only its reference implementation (" + used + ")";
}
/// Checks a primitive in make(), because an epilogue may change the implementation. Throws dnnl::error for a slow
/// reference implementation.
template <class Pd>
Pd not_reference(DType t, Pd pd) {
  if (is_slow_reference(t, pd))
    throw dnnl::error(dnnl_unimplemented, "oneDNN has only its slow reference implementation for this node");
  return pd;
}

// The entries, one table per file.
std::span<const Entry> matmul_entries();
std::span<const Entry> conv_entries();
std::span<const Entry> pool_entries();
std::span<const Entry> softmax_entries();
std::span<const Entry> norm_entries();
std::span<const Entry> recurrent_entries();
std::span<const Entry> attention_entries();
std::span<const Entry> elementwise_entries();
std::span<const Entry> reduce_entries();
std::span<const Entry> copy_entries();
std::span<const Entry> index_entries();
std::span<const Entry> quantized_entries();
std::span<const Entry> exchange_entries();

}  // namespace tutti::onednn
