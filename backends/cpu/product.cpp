// Products in the order of exact numerics.
#include "backends/cpu/product.h"

#include "core/geometry/product.h"
#include "kernels/cpu/exact.h"

namespace tutti::cpu {
namespace {

MatchResult declines_exact(const NodeView& c) {
  if (c.program.numerics != TUTTI_EXACT) return "for exact numerics only";
  if (c.node().inputs.empty()) return "no inputs";
  if (c.in(0).dtype != DType::f32) return "dtype " + std::string(name(c.in(0).dtype));
  return expect_product(c);
}

const Entry entries[] = {{"kernels exact matmul", "matmul", declines_exact, make_exact_product, {.exact = true}}};

}  // namespace

MatchResult expect_product(const NodeView& c) {
  if (MatchResult why = expect_inputs(c, 2); !why.empty()) return why;
  if (MatchResult why = expect_counted(c); !why.empty()) return why;
  const Shape &a = c.in(0).shape, &b = c.in(1).shape;
  if (a.size() < 2 || b.size() < 2 || c.in(0).dtype != c.in(1).dtype)
    return "the operands must have rank 2 or more and the same dtype";
  size_t ra = a.size(), rb = b.size();
  bool ta = c.node().attrs.i("ta") != 0, tb = c.node().attrs.i("tb") != 0;
  if (a[ra - (ta ? 2 : 1)] != b[rb - (tb ? 1 : 2)]) return "the inner dimensions differ";
  return expect_result(c, 0, {c.in(0).dtype, product_geometry(a, b, ta, tb).result()});
}

KernelPtr make_exact_product(const NodeView& c) {
  const Attrs& a = c.node().attrs;
  kernels::ExactProduct product(c.in(0).shape, c.in(1).shape, a.i("ta") != 0, a.i("tb") != 0);
  return std::make_unique<FunctionKernel>(
      c,
      [product, threads = c.threads](void* const* in, void* const* out, std::byte* scratch) {
        product.run(static_cast<const float*>(in[0]), static_cast<const float*>(in[1]), static_cast<float*>(out[0]),
                    scratch, threads);
      },
      product.scratch_bytes());
}

std::span<const Entry> product_entries() { return entries; }

}  // namespace tutti::cpu
