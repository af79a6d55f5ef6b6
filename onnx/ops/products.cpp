// Matrix and tensor products.
#include "graph/functions/einsum.h"

#include "graph/ops.h"
#include "onnx/handler.h"

namespace tutti::onnx {
Value product(Value a, Value b) {
  if (!is_float(a.dtype())) return cast(product(cast(a, DType::f64), cast(b, DType::f64)), a.dtype());
  bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a = unsqueeze(a, 0);
  if (column) b = unsqueeze(b, 1);
  Value y = matmul(a, b);
  auto rank = static_cast<int64_t>(y.rank());
  if (row && column) return squeeze(y, {rank - 2, rank - 1});
  if (row) return squeeze(y, {rank - 2});
  return column ? squeeze(y, {rank - 1}) : y;
}

namespace {

Value gemm(const Context& c) {
  double alpha = c.f("alpha", 1), beta = c.f("beta", 1);
  Value y = matmul(c.in(0), c.in(1), c.i("transA", 0) != 0, c.i("transB", 0) != 0);
  if (alpha != 1) y = y * alpha;
  if (!c.has(2)) return y;
  return y + (beta == 1 ? c.in(2) : c.in(2) * beta);
}

}  // namespace

void add_products(Table& t) {
  t["MatMul"] = [](const Context& c) { return Values{product(c.in(0), c.in(1))}; };
  t["Gemm"] = [](const Context& c) { return Values{gemm(c)}; };
  t["Einsum"] = [](const Context& c) { return Values{einsum(c.s("equation", ""), c.all())}; };
}

}  // namespace tutti::onnx
