// softmax and log_softmax with kernels/cpu/softmax: oneDNN's rounds more often, which affects gradients of nearly
// certain predictions and causes negative losses, and it is slow along other axes than the last.
#include "kernels/cpu/softmax.h"
#include "backends/cpu/compute_in_f32.h"
#include "backends/cpu/kernel.h"
#include "kernels/cpu/isa_kernels.h"

namespace tutti::cpu {
namespace {

MatchResult declines(const NodeView& c) {
  if (MatchResult why = expect_inputs(c, 1); !why.empty()) return why;
  normalize_axis(c.node().attrs.i("axis"), c.in(0).shape.size());
  if (MatchResult why = expect_result(c, 0, c.in(0)); !why.empty()) return why;
  return c.in(0).dtype == DType::f32 ? "" : mismatch_in_f32(c);
}

KernelPtr make(const NodeView& c) {
  AxisGeometry g = axis_geometry(c.in(0).shape, c.node().attrs.i("axis"));
  if (num_elements(c.in(0).shape) == 0) g.outer = 0;
  auto kernel = std::make_unique<FunctionKernel>(c, [g, logarithm = c.node().op == "log_softmax", threads = c.threads](
                                                        void* const* in, void* const* out, std::byte*) {
    kernels::softmax(static_cast<const float*>(in[0]), static_cast<float*>(out[0]), g, logarithm, threads);
  });
  kernel->implementation = kernels::isa_kernels().name;
  if (c.in(0).dtype == DType::f32) return kernel;
  return make_in_f32(c, std::move(kernel));
}

const Entry entries[] = {{"kernels softmax", "softmax", declines, make},
                         {"kernels log softmax", "log_softmax", declines, make}};

}  // namespace

std::span<const Entry> softmax_entries() { return entries; }

}  // namespace tutti::cpu
