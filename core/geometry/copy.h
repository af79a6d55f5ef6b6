// Ops that move elements: each is a strided copy per input.
#pragma once
#include <span>

#include "core/base/attrs.h"
#include "core/base/shape.h"

namespace tutti {

/// y[to_offset + i·to] = x[from_offset + i·from] for every index i of `dims`; strides and offsets in elements.
struct StridedCopy {
  Shape dims, from, to;
  int64_t from_offset = 0, to_offset = 0;
};

/// Calls visit(element of x, element of y) for every index, in row-major order.
template <class Visit>
void each_element(const StridedCopy& c, const Visit& visit) {
  Shape index(c.dims.size());
  int64_t from = c.from_offset, to = c.to_offset;
  for (int64_t n = num_elements(c.dims); n > 0; --n) {
    visit(static_cast<size_t>(from), static_cast<size_t>(to));
    for (size_t d = index.size(); d-- > 0;) {
      from += c.from[d];
      to += c.to[d];
      if (++index[d] < c.dims[d]) break;
      from -= c.from[d] * c.dims[d];
      to -= c.to[d] * c.dims[d];
      index[d] = 0;
    }
  }
}

/// Drops dimensions of size 1 and merges adjacent dimensions that are contiguous in every operand; a single element
/// keeps one dimension of stride 1. `strides`: those of every operand, one per dimension.
void merge_dimensions(Shape& dims, const std::vector<Shape*>& strides);

struct CopyGeometry {
  Shape result;
  std::vector<StridedCopy> copies = {};  ///< one per input, into a dense result
};

/// Axis i of the result is axis perm[i] of x.
struct TransposeGeometry : CopyGeometry {
  Ints perm;  ///< not negative
};
TransposeGeometry transpose_geometry(const Shape& x, const Attrs& a);

/// x repeated to the attribute shape by NumPy's rule.
CopyGeometry broadcast_geometry(const Shape& x, const Attrs& a);

/// x[starts:stops:strides] as in NumPy.
struct SliceGeometry : CopyGeometry {
  Ints starts, strides;  ///< one per axis, within x
};
SliceGeometry slice_geometry(const Shape& x, const Attrs& a);

/// `low` elements before, `high` after and `interior` between neighbours.
struct PadGeometry : CopyGeometry {
  Ints low, interior;  ///< one per axis
};
PadGeometry pad_geometry(const Shape& x, const Attrs& a);

/// Concatenates tensors along the attribute axis.
struct ConcatGeometry : CopyGeometry {
  size_t axis;
};
ConcatGeometry concat_geometry(std::span<const TensorType> x, const Attrs& a);

}  // namespace tutti
