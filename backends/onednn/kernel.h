// What runs a node: a kernel, made by the first entry of the ordered list that takes the node.
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

/// Bytes that a part of the workspace takes: the next part begins at a cache line.
constexpr size_t aligned(size_t bytes) { return align_up(bytes, size_t{64}); }

/// What a kernel does with its result before it is stored. (Of products and convolutions `max(…, 0)` stays a pass of
/// its own: oneDNN's relu turns NaN into 0, which would hide a diverging run.)
struct Epilogue {
  uint32_t bias = TUTTI_NONE;  ///< a value added along the last axis (matmul) or the channels (conv2d); NONE: nothing
  std::optional<sdk::Limits> limits = {};  ///< of a normalisation
};

/// What an entry decides on.
struct NodeView {
  const sdk::Program& program;
  uint32_t number;
  int threads;
  std::vector<Layout> layouts = {};  ///< the inputs' present layouts; empty while only a verdict is asked for
  Epilogue epilogue = {};            ///< the kernel's inputs then end with the bias
  bool sums_gradient = false;  ///< conv2d_dw: a second result is the sum of the cotangent over all but the channels

  const sdk::Node& node() const { return program.nodes[number]; }
  const TensorType& in(size_t k) const { return program.type(node().inputs[k]); }
  /// Results that nobody reads have no type: see wants().
  const TensorType& out(size_t k) const { return program.type(node().results[k]); }
  bool wants(size_t k) const { return k < node().results.size() && node().results[k] != TUTTI_NONE; }
  Layout layout(size_t k) const { return layouts.empty() ? plain_layout(in(k)) : layouts[k]; }
};

/// A prepared piece of work: fixed layouts, fixed addresses once bound. `in` and `out` hold one layout per input and
/// result of the node (of the group); results that nobody reads are skipped.
class Kernel {
 public:
  virtual ~Kernel() = default;
  std::vector<Layout> in, out;
  size_t scratch = 0;               ///< bytes of workspace that run uses
  bool overwrites = false;          ///< the first result may lie where the first input does
  std::string implementation = {};  ///< of oneDNN's or the set of instructions: "brgemm:avx512_core"; "" unknown
  /// Called once, when memory exists. `out` holds null for results that nobody reads.
  virtual void bind(std::span<void* const> in, std::span<void* const> out, std::byte* scratch) = 0;
  virtual void run() = 0;
};

using KernelPtr = std::unique_ptr<Kernel>;
using Entry = sdk::Entry<NodeView, KernelPtr>;
using Choice = sdk::Choice<NodeView, KernelPtr>;
using ChoiceCache = sdk::ChoiceCache<NodeView, KernelPtr>;
using sdk::Mismatch;

/// The ordered list: oneDNN's primitives first, then the kernels of kernels/.
const std::vector<Entry>& kernel_list();
/// Asks the list for a node; its numerics, version and attributes first.
Choice choose_kernel(const NodeView& c);

/// The entry's kernel. Throws NodeError when oneDNN cannot make it, for want of memory as a rule.
KernelPtr make_kernel(const Entry& entry, const NodeView& c);
/// The same, or null where oneDNN has none: for a kernel that does more than its node.
KernelPtr try_make(const Entry& entry, const NodeView& c);

/// A kernel around a function of the bound addresses. All layouts plain unless changed.
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

/// A kernel that is one oneDNN primitive. `slots` says which argument each input and result is.
class PrimitiveKernel : public Kernel {
 public:
  struct Argument {
    int id;         ///< DNNL_ARG_…
    bool result;    ///< a result, else an input
    uint32_t slot;  ///< which one
    Desc desc;      ///< as the primitive sees it
  };
  /// `threads`: how many the primitive runs on (small problems are slower on several).
  PrimitiveKernel(const dnnl::primitive& primitive, std::vector<Argument> arguments, const Desc& scratchpad,
                  int threads, int session_threads);
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

/// oneDNN's CPU engine and in-order stream of this process.
const dnnl::engine& engine();
const dnnl::stream& stream();
/// Attributes every primitive is made with: scratch memory comes from the caller.
dnnl::primitive_attr attributes();

/// The threads for a problem of so many floating-point operations: one where a second costs more than it gives.
int threads_for(double operations, int threads);

/// Moves one value from one layout into another.
KernelPtr make_reorder(const TensorType& t, const Layout& from, const Layout& to, int threads);
/// Moves bytes in row-major order, whatever the dtype.
KernelPtr make_plain_copy(const TensorType& t, int threads);
/// Writes zeros: the value of products over nothing.
KernelPtr make_zero(const NodeView& c);

/// "" or the reason: the node has not so many inputs, or result k is not of type `want`.
Mismatch expect_inputs(const NodeView& c, size_t count);
/// oneDNN's products count a dimension in 32 bits on the way: beyond, they divide by zero or worse.
Mismatch expect_counted(const NodeView& c);
Mismatch expect_result(const NodeView& c, size_t k, const TensorType& want);
/// "" or why oneDNN's primitives cannot compute in that type here (f32, bf16, f16).
Mismatch declines_dtype(DType t);
/// "" or why a primitive cannot be made; `f` makes its descriptor, which may come back empty.
template <class F>
Mismatch declines_primitive(F&& f) {
  try {
    return f() ? "" : "oneDNN has no implementation for it here";
  } catch (const dnnl::error& e) {
    return e.what();
  }
}
/// Whether a primitive that computes on `t` is oneDNN's reference implementation where that is none: in f16 and bf16,
/// for which the ops have an entry in f32 too, it is a thousand times slower.
template <class Pd>
bool is_slow_reference(DType t, const Pd& pd) {
  return t != DType::f32 && std::string_view(pd.impl_info_str()).starts_with("ref");
}
/// declines_primitive for such an op.
template <class F>
Mismatch declines_primitive(DType t, F&& f) {
  std::string used;
  Mismatch why = declines_primitive([&] {
    auto pd = f();
    if (pd && is_slow_reference(t, pd)) used = pd.impl_info_str();
    return static_cast<bool>(pd);
  });
  if (!why.empty() || used.empty()) return why;
  return "oneDNN has only its reference implementation (" + used + ")";
}
/// A primitive for make(): with an epilogue it may be another implementation than the one that was asked about. Throws
/// dnnl::error for a slow reference.
template <class Pd>
Pd not_reference(DType t, Pd pd) {
  if (is_slow_reference(t, pd)) throw dnnl::error(dnnl_unimplemented, "only oneDNN's reference implementation does it");
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

}  // namespace tutti::onednn
