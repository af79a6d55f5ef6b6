// matmul with oneDNN on row-major memory: transposes are strides, batch dimensions of size 1 broadcast.
#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/compute_in_f32.h"
#include "backends/cpu/product.h"
#include "backends/onednn/repair.h"

namespace tutti::onednn {
namespace {

using dnnl::memory;

/// [batch..., rows, columns] of a row-major operand, padded to `rank` dimensions; swapped if transposed.
Desc operand(memory::data_type t, const Shape& shape, bool transposed, size_t rank) {
  Shape dims(rank - shape.size(), 1);
  dims.insert(dims.end(), shape.begin(), shape.end());
  Shape strides = strides_of(dims);
  if (transposed) {
    std::swap(dims[rank - 1], dims[rank - 2]);
    std::swap(strides[rank - 1], strides[rank - 2]);
  }
  return Desc(dims, t, strides);
}

MatchResult check_shapes(const NodeView& c) {
  if (MatchResult why = cpu::expect_product(c); !why.empty()) return why;
  size_t rank = std::max(c.in(0).shape.size(), c.in(1).shape.size());
  return rank > DNNL_MAX_NDIMS ? fmt::format("rank {} is not supported", rank) : "";
}

ProductDescs describe(const NodeView& c, memory::data_type t) {
  Shape a = c.in(0).shape, b = c.in(1).shape, y = c.out(0).shape;
  bool ta = c.node().attrs.i("ta") != 0, tb = c.node().attrs.i("tb") != 0;
  // If b is a single matrix, the batch of a is folded into its rows.
  if (!ta && a.size() > 2 && num_elements(b) == b[b.size() - 2] * b.back()) {
    int64_t rows = num_elements(std::span(a).first(a.size() - 1));
    a = {rows, a.back()};
    b = {b[b.size() - 2], b.back()};
    y = {rows, y.back()};
  }
  size_t rank = y.size();
  ProductDescs p{operand(t, a, ta, rank), operand(t, b, tb, rank), operand(t, y, false, rank), {}};
  if (c.epilogue.bias != TUTTI_NONE) {
    Shape dims(rank, 1);
    dims.back() = y.back();
    p.bias = plain_desc(t, dims);
  }
  return p;
}

dnnl::matmul::primitive_desc primitive_of(const ProductDescs& p, bool allow_empty) {
  return {engine(), p.a, p.b, p.bias, p.y, attributes(), allow_empty};
}

bool empty(const NodeView& c) { return num_elements(c.out(0).shape) == 0 || num_elements(c.in(0).shape) == 0; }

MatchResult declines(const NodeView& c) {
  if (MatchResult why = cpu::declines_dtype(c.in(0).dtype); !why.empty()) return why;
  if (MatchResult why = check_shapes(c); !why.empty()) return why;
  if (!c.wants(0) || empty(c)) return "";
  return declines_primitive(c.in(0).dtype, [&] { return primitive_of(describe(c, data_type(c.in(0).dtype)), true); });
}

KernelPtr make_product(const NodeView& c, DType t) {
  ProductDescs p = describe(c, data_type(t));
  double operations = 2.0 * static_cast<double>(num_elements(p.y.get_dims())) * static_cast<double>(p.terms());
  int used = cpu::threads_for(operations, c.threads);
  ThreadScope scope(used);
  auto pd = not_reference(t, primitive_of(p, false));
  std::vector<PrimitiveKernel::Argument> arguments = {
      {DNNL_ARG_SRC, false, 0, p.a}, {DNNL_ARG_WEIGHTS, false, 1, p.b}, {DNNL_ARG_DST, true, 0, p.y}};
  if (c.epilogue.bias != TUTTI_NONE) arguments.push_back({DNNL_ARG_BIAS, false, 2, p.bias});
  auto kernel = std::make_unique<PrimitiveKernel>(pd, arguments, used, c.threads);
  for (size_t k = 0; k < 2; ++k) kernel->in.push_back(plain_layout({t, c.in(k).shape}));
  kernel->out = {plain_layout({t, c.out(0).shape})};
  if (c.epilogue.bias != TUTTI_NONE) kernel->in.push_back(plain_layout(c.program.type(c.epilogue.bias)));
  return with_repair(p, std::move(kernel), t, c.threads);
}

KernelPtr make(const NodeView& c) {
  if (empty(c)) return cpu::make_zero(c);
  return make_product(c, c.in(0).dtype);
}

// ---- in f32

MatchResult declines_wide(const NodeView& c) {
  if (MatchResult why = cpu::mismatch_in_f32(c); !why.empty()) return why;
  return check_shapes(c);
}

KernelPtr make_wide(const NodeView& c) {
  if (empty(c)) return cpu::make_zero(c);
  return cpu::make_in_f32(c, make_product(c, DType::f32));
}

const Entry entries[] = {{"onednn matmul", "matmul", declines, make, {.bias = true}},
                         {"onednn matmul in f32", "matmul", declines_wide, make_wide}};

}  // namespace

std::span<const Entry> matmul_entries() { return entries; }

}  // namespace tutti::onednn
