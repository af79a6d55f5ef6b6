// Products with quantised weights with the kernels in kernels/: for few rows, where reading the weights dominates.
#include <fmt/format.h>

#include "backends/cpu/kernel.h"
#include "core/geometry/quantized.h"
#include "kernels/cpu/quantized.h"

namespace tutti::cpu {
namespace {

MatchResult declines(const NodeView& c) {
  if (MatchResult why = expect_inputs(c, 4); !why.empty()) return why;
  DType t = c.in(0).dtype;
  if (t != DType::f32 && !is_narrow(t)) return "dtype " + std::string(name(t));
  if (DType s = c.in(2).dtype; s != DType::f16 && s != DType::f32) return "dtype " + std::string(name(s));
  const Attrs& a = c.node().attrs;
  Shape y = quantized_product(c.in(0), c.in(1), c.in(2), c.in(3), a.i("bits"), a.i("group"));
  if (y[0] > quantized_few_rows) return fmt::format("x has {} rows, the maximum is {}", y[0], quantized_few_rows);
  return expect_result(c, 0, {t, y});
}

KernelPtr make(const NodeView& c) {
  const Shape &x = c.in(0).shape, &w = c.in(1).shape;
  if (num_elements(x) == 0 || w[0] == 0) return make_zero(c);
  const Attrs& a = c.node().attrs;
  kernels::QuantizedProduct p{.rows = x[0],
                              .features = w[0],
                              .inputs = x[1],
                              .bits = static_cast<int>(a.i("bits")),
                              .group = a.i("group"),
                              .scales = kernels::storage_of(c.in(2).dtype),
                              .storage = kernels::storage_of(c.in(0).dtype)};
  return std::make_unique<FunctionKernel>(
      c,
      [p, threads = c.threads](void* const* in, void* const* out, std::byte* scratch) {
        p.run(in[0], static_cast<const uint8_t*>(in[1]), in[2], in[3], out[0], scratch, threads);
      },
      p.scratch_bytes(c.threads));
}

const Entry entries[] = {{"kernels quantised product", "quantized_matmul", declines, make}};

}  // namespace

std::span<const Entry> quantized_entries() { return entries; }

}  // namespace tutti::cpu
