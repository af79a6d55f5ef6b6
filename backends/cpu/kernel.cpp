#include "backends/cpu/kernel.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/parallel.h"

namespace tutti::cpu {
namespace {

/// Below this number of operations a second thread of a product does not pay off (measured: 128x10x512 and 64x10x128
/// products take 20 us on one thread, up to 11 ms on two of a busy machine).
constexpr double worth_threads = 4e6;

}  // namespace

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
  in.resize(c.node().inputs.size());
  out.resize(c.node().results.size());
  scratch = scratch_bytes;
}

void FunctionKernel::bind(std::span<void* const> in, std::span<void* const> out, std::byte* scratch) {
  in_.assign(in.begin(), in.end());
  out_.assign(out.begin(), out.end());
  scratch_ = scratch;
}

namespace {

/// A kernel that calls a function and does not belong to a node.
class CopyKernel : public Kernel {
 public:
  explicit CopyKernel(std::function<void(const void*, void*)> run) : run_(std::move(run)) { in = out = {Layout{}}; }
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
  return std::make_unique<CopyKernel>([bytes, threads](const void* x, void* y) {
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
  return (to.plain ? from : to).form->reorder(t, from, to, threads);
}

}  // namespace tutti::cpu
