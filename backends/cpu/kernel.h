// Kernels. A node is run by a kernel of the first entry in the ordered list that accepts the node.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/layout.h"
#include "core/base/rounding.h"
#include "sdk/kernel_list.h"
#include "sdk/plan/patterns.h"
#include "sdk/program.h"

namespace tutti::cpu {

/// Size of a workspace part, rounded up to whole cache lines.
constexpr size_t aligned(size_t bytes) { return align_up(bytes, size_t{64}); }

/// Operations on a kernel's result before it is stored. (`max(…, 0)` is not fused into products and convolutions:
/// libraries' relu turns NaN into 0, which would hide a diverging run.)
struct Epilogue {
  uint32_t bias = TUTTI_NONE;  ///< a value added along the last axis (matmul) or the channels (conv2d); NONE: no bias
  std::optional<sdk::Bounds> limits = {};  ///< for normalizations
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
  Layout layout(size_t k) const { return layouts.empty() ? Layout{} : layouts[k]; }
};

/// A prepared computation with fixed layouts, and fixed addresses once bound. `in` and `out` have one layout per input
/// and result of the node (or group). An unused result whose layout has a form is written, to scratch memory.
class Kernel {
 public:
  virtual ~Kernel() = default;
  std::vector<Layout> in, out;
  size_t scratch = 0;       ///< workspace bytes for run()
  bool overwrites = false;  ///< the first result may overwrite the first input
  /// The library's implementation or the instruction set: "brgemm:avx512_core"; "": unknown.
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
/// "" or a dimension is too large: libraries' products compute with 32-bit dimensions and fail (division by zero or
/// worse) beyond.
MatchResult expect_counted(const NodeView& c);
MatchResult expect_result(const NodeView& c, size_t k, const TensorType& want);
/// "" or the reason why the kernels of floats do not support the type (f32, bf16, f16).
MatchResult declines_dtype(DType t);

// The entries, one table per file.
std::span<const Entry> product_entries();
std::span<const Entry> softmax_entries();
std::span<const Entry> norm_entries();
std::span<const Entry> attention_entries();
std::span<const Entry> elementwise_entries();
std::span<const Entry> reduce_entries();
std::span<const Entry> copy_entries();
std::span<const Entry> index_entries();
std::span<const Entry> quantized_entries();
std::span<const Entry> exchange_entries();

}  // namespace tutti::cpu
