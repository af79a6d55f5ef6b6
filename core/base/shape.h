// Shapes: row-major, static, outermost first; logical images are NCHW.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/export.h"

namespace tutti {

using Shape = std::vector<int64_t>;

/// What a value is: element type and dimensions.
struct TUTTI_API TensorType {
  DType dtype = DType::f32;
  Shape shape = {};
  bool operator==(const TensorType&) const = default;
};

/// Product of the dimensions; 1 for a scalar. Throws Error if a dimension is negative or the product passes 2^62.
TUTTI_API int64_t num_elements(std::span<const int64_t> shape);
/// Bytes of a row-major tensor of that type.
TUTTI_API size_t num_bytes(const TensorType& type);
/// Row-major strides in elements.
TUTTI_API Shape strides_of(std::span<const int64_t> shape);
/// Strides that walk a tensor of shape `from` as if it had shape `to` (0 along broadcast dimensions).
TUTTI_API Shape broadcast_strides(std::span<const int64_t> from, std::span<const int64_t> to);
/// NumPy's rule: align at the right; equal or one of them 1. Throws Error naming both shapes.
TUTTI_API Shape broadcast_shapes(const Shape& a, const Shape& b);
/// Axis counted from the end when negative; a scalar takes 0 and -1. Throws Error when outside [-rank, rank).
TUTTI_API int64_t normalize_axis(int64_t axis, size_t rank);
/// Sorted, unique, non-negative axes, none of a scalar; an empty list means all axes.
TUTTI_API std::vector<int64_t> normalize_axes(std::span<const int64_t> axes, size_t rank);

TUTTI_API std::string to_string(std::span<const int64_t> shape);  ///< "[2, 3]"
TUTTI_API std::string to_string(const TensorType& type);          ///< "f32[2, 3]"

}  // namespace tutti
