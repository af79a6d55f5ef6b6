// What padding, pools and resampling share: every line along one axis taken apart by a constant.
#pragma once
#include <vector>

#include "graph/graph.h"

namespace tutti {

/// A constant of these numbers, row-major.
Value constant_of(Graph& graph, const TensorType& type, const std::vector<double>& numbers);

/// The positions `index` of the axis, in that order.
Value take(Value x, size_t axis, const Ints& index);

/// A matrix [rows, columns], row-major.
struct Matrix {
  int64_t rows, columns;
  std::vector<double> at;
  Matrix(int64_t r, int64_t c) : rows(r), columns(c), at(static_cast<size_t>(r * c)) {}
  double& operator()(int64_t r, int64_t c) { return at[static_cast<size_t>(r * columns + c)]; }
};
/// The matrix times every line along the axis, which has as many positions as the matrix has columns.
Value along_axis(const Matrix& m, Value x, size_t axis);

/// Throws Error unless x has `rank` axes; `layout` names them.
void check_rank(const char* what, Value x, size_t rank, const char* layout);
/// The size of an axis as [elements before it, its own, elements behind it].
Shape around_axis(const Shape& x, size_t axis);

}  // namespace tutti
