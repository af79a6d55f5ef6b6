// Convolutions as products: the windows of images as the columns of a matrix.
#pragma once
#include "core/geometry/conv.h"

namespace tutti::blas {

/// Rows [first, last) of windows of some channels of an image. Row (c, ky, kx) of the matrix has the element that each
/// window reads by that tap, 0 outside the image.
struct ColumnPart {
  int64_t channels, first, last;
};

/// Writes the columns of channels from `x` on; rows of `columns` are `stride` apart.
void to_columns(const float* x, const ConvGeometry& g, const ColumnPart& part, float* columns, int64_t stride);
/// The adjoint: adds each element of the columns to the pixel that it came from.
void add_columns(const float* columns, int64_t stride, const ConvGeometry& g, const ColumnPart& part, float* x);

}  // namespace tutti::blas
