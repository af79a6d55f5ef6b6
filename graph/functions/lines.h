// Shared by padding, pooling and resampling: linear maps along one axis.
#pragma once
#include <vector>

#include "graph/graph.h"

namespace tutti {

/// A constant of the given numbers, row-major.
Value constant_of(Graph& graph, const TensorType& type, const std::vector<double>& numbers);

/// The elements at positions `index` of the axis, in that order.
Value take(Value x, size_t axis, const Ints& index);

/// A matrix [rows, columns], row-major.
struct Matrix {
  int64_t rows, columns;
  std::vector<double> at;
  Matrix(int64_t r, int64_t c) : rows(r), columns(c), at(static_cast<size_t>(r * c)) {}
  double& operator()(int64_t r, int64_t c) { return at[static_cast<size_t>(r * columns + c)]; }
};
/// Multiplies the matrix with every line along the axis, whose size must be the number of columns.
Value along_axis(const Matrix& m, Value x, size_t axis);

/// Throws Error unless x has `rank` axes; `layout` names them.
void check_rank(const char* what, Value x, size_t rank, const char* layout);
/// A shape as [elements before the axis, its size, elements after it].
Shape around_axis(const Shape& x, size_t axis);

}  // namespace tutti
