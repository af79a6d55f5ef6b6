#include "graph/functions/lines.h"

#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/ops/gather.h"
#include "graph/ops/matmul.h"
#include "graph/ops/reshape.h"

namespace tutti {

Value constant_of(Graph& graph, const TensorType& type, const std::vector<double>& numbers) {
  std::vector<std::byte> data(num_bytes(type));
  for (size_t i = 0; i < numbers.size(); ++i) store_element(type.dtype, data.data(), i, numbers[i]);
  return graph.constant(type, std::move(data));
}

Value take(Value x, size_t axis, const Ints& index) {
  TensorType type{DType::i32, {static_cast<int64_t>(index.size())}};
  return gather(x, constant_of(x.graph(), type, {index.begin(), index.end()}), static_cast<int64_t>(axis));
}

Value along_axis(const Matrix& m, Value x, size_t axis) {
  Shape shape = x.shape(), lines = around_axis(shape, axis);
  Value a = constant_of(x.graph(), {x.dtype(), {m.rows, m.columns}}, m.at);
  shape[axis] = m.rows;
  if (lines[2] == 1) return reshape(matmul(reshape(x, {lines[0], lines[1]}), a, false, true), shape);
  return reshape(matmul(a, reshape(x, lines)), shape);
}

void check_rank(const char* what, Value x, size_t rank, const char* layout) {
  if (x.rank() != rank)
    throw invalid(fmt::format("{}: {} has {} dimensions, expected {}", what, to_string(x.shape()), x.rank(), rank),
                  fmt::format("reshape it to {}", layout));
}

Shape around_axis(const Shape& x, size_t axis) {
  auto at = x.begin() + static_cast<std::ptrdiff_t>(axis);
  return {num_elements(Shape(x.begin(), at)), *at, num_elements(Shape(at + 1, x.end()))};
}

}  // namespace tutti
