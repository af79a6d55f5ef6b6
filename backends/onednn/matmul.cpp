// matmul through oneDNN, on row-major memory: transposes are strides, batch dimensions of size 1 broadcast.
#include <fmt/format.h>

#include <numeric>

#include "backends/onednn/kernel.h"
#include "kernels/eval.h"
#include "kernels/parallel.h"

namespace tutti::onednn {
namespace {

using dnnl::memory;

struct Product {
  Desc a, b, y, bias;
  double operations = 0;
};

/// [batch..., rows, columns] of a row-major operand, aligned to `rank` dimensions; swapped where transposed.
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

Decline check_shapes(const Case& c) {
  if (Decline why = expect_inputs(c, 2); !why.empty()) return why;
  const Shape &a = c.in(0).shape, &b = c.in(1).shape;
  if (a.size() < 2 || b.size() < 2 || c.in(0).dtype != c.in(1).dtype)
    return "operands of rank >= 2 and one dtype are needed";
  size_t ra = a.size(), rb = b.size();
  bool ta = c.node().attrs.i("ta") != 0, tb = c.node().attrs.i("tb") != 0;
  if (a[ra - (ta ? 2 : 1)] != b[rb - (tb ? 1 : 2)]) return "the inner dimensions differ";
  Shape y = broadcast_shapes(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  y.push_back(a[ra - (ta ? 1 : 2)]);
  y.push_back(b[rb - (tb ? 2 : 1)]);
  if (y.size() > DNNL_MAX_NDIMS) return fmt::format("rank {}", y.size());
  return expect_result(c, 0, {c.in(0).dtype, y});
}

Product describe(const Case& c, memory::data_type t) {
  Shape a = c.in(0).shape, b = c.in(1).shape, y = c.out(0).shape;
  bool ta = c.node().attrs.i("ta") != 0, tb = c.node().attrs.i("tb") != 0;
  // One matrix b for all of a's batch: the batch is rows.
  if (!ta && a.size() > 2 && num_elements(b) == b[b.size() - 2] * b.back()) {
    int64_t rows = num_elements(std::span(a).first(a.size() - 1));
    a = {rows, a.back()};
    b = {b[b.size() - 2], b.back()};
    y = {rows, y.back()};
  }
  size_t rank = y.size();
  Product p{operand(t, a, ta, rank), operand(t, b, tb, rank), operand(t, y, false, rank), {}, 0};
  int64_t k = ta ? a[a.size() - 2] : a.back();
  p.operations = 2.0 * static_cast<double>(num_elements(y)) * static_cast<double>(k);
  if (c.epilogue.bias != TUTTI_NONE) {
    Shape dims(rank, 1);
    dims.back() = y.back();
    p.bias = plain_desc(t, dims);
  }
  return p;
}

dnnl::matmul::primitive_desc primitive_of(const Product& p, const Epilogue& e, bool allow_empty) {
  if (e.bias != TUTTI_NONE) return {engine(), p.a, p.b, p.bias, p.y, attributes(), allow_empty};
  return {engine(), p.a, p.b, p.y, attributes(), allow_empty};
}

bool empty(const Case& c) { return num_elements(c.out(0).shape) == 0 || num_elements(c.in(0).shape) == 0; }

Decline declines(const Case& c) {
  if (Decline why = declines_dtype(c.in(0).dtype); !why.empty()) return why;
  if (Decline why = check_shapes(c); !why.empty()) return why;
  if (!c.wants(0) || empty(c)) return "";
  return declines_primitive([&] { return primitive_of(describe(c, data_type(c.in(0).dtype)), {}, true); });
}

KernelPtr make_product(const Case& c, memory::data_type t) {
  Product p = describe(c, t);
  int used = threads_for(p.operations, c.threads);
  ThreadScope scope(used);
  auto pd = primitive_of(p, c.epilogue, false);
  std::vector<PrimitiveKernel::Argument> arguments = {
      {DNNL_ARG_SRC, false, 0, p.a}, {DNNL_ARG_WEIGHTS, false, 1, p.b}, {DNNL_ARG_DST, true, 0, p.y}};
  if (c.epilogue.bias != TUTTI_NONE) arguments.push_back({DNNL_ARG_BIAS, false, 2, p.bias});
  auto kernel = std::make_unique<PrimitiveKernel>(dnnl::matmul(pd), arguments, pd.scratchpad_desc(), used, c.threads);
  kernel->in = {plain_form(c.in(0)), plain_form(c.in(1))};
  kernel->out = {plain_form(c.out(0))};
  if (c.epilogue.bias != TUTTI_NONE) kernel->in.push_back(plain_form(c.program.type(c.epilogue.bias)));
  return kernel;
}

KernelPtr make(const Case& c) {
  if (empty(c)) return make_zero(c);
  return make_product(c, data_type(c.in(0).dtype));
}

// ---- f16 and bf16 where the primitive has no implementation: computed in f32 on widened copies

size_t rounded(int64_t elements) { return (static_cast<size_t>(elements) * 4 + 63) / 64 * 64; }

Decline declines_widened(const Case& c) {
  DType t = c.in(0).dtype;
  if (t != DType::f16 && t != DType::bf16) return "dtype " + std::string(name(t));
  return check_shapes(c);
}

/// The product in f32 between two conversions; the widened copies live in the workspace.
class Widened : public Kernel {
 public:
  Widened(const Case& c, KernelPtr product)
      : product_(std::move(product)), storage_(kernels::storage_of(c.in(0).dtype)), threads_(c.threads) {
    sizes_ = {num_elements(c.in(0).shape), num_elements(c.in(1).shape), num_elements(c.out(0).shape)};
    in = {plain_form(c.in(0)), plain_form(c.in(1))};
    out = {plain_form(c.out(0))};
    scratch = product_->scratch;
    for (int64_t n : sizes_) scratch += rounded(n);
  }
  void bind(std::span<void* const> in, std::span<void* const> out, std::byte* scratch) override {
    narrow_ = {in[0], in[1], out[0]};
    for (size_t k = 0; k < 3; ++k, scratch += rounded(sizes_[k - 1])) wide_[k] = scratch;
    product_->bind(std::span(wide_).first(2), std::span(wide_).last(1), scratch);
  }
  void run() override {
    const kernels::Lanes& l = kernels::lanes();
    auto convert = [&](kernels::LaneFn f, void* to, size_t to_size, const void* from, size_t from_size, int64_t n) {
      kernels::share(n, n, threads_, [&](int64_t first, int64_t last, int) {
        const void* x = static_cast<const char*>(from) + static_cast<size_t>(first) * from_size;
        f(static_cast<char*>(to) + static_cast<size_t>(first) * to_size, x, x, x, last - first);
      });
    };
    for (size_t k = 0; k < 2; ++k) convert(l.load(storage_), wide_[k], 4, narrow_[k], 2, sizes_[k]);
    product_->run();
    convert(l.store(storage_), narrow_[2], 2, wide_[2], 4, sizes_[2]);
  }

 private:
  KernelPtr product_;
  kernels::Storage storage_;
  int threads_;
  std::array<int64_t, 3> sizes_ = {};
  std::array<void*, 3> narrow_ = {}, wide_ = {};
};

KernelPtr make_widened(const Case& c) {
  if (empty(c)) return make_zero(c);
  return std::make_unique<Widened>(c, make_product(c, memory::data_type::f32));
}

const Entry entries[] = {{"onednn matmul", "matmul", declines, make},
                         {"onednn matmul in f32", "matmul", declines_widened, make_widened}};

}  // namespace

std::span<const Entry> matmul_entries() { return entries; }

}  // namespace tutti::onednn
