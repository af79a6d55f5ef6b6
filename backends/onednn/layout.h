// How a value lies in memory: row-major, or in a layout that oneDNN chose.
#pragma once
#include <dnnl.hpp>

#include "core/base/shape.h"

namespace tutti::onednn {

using Desc = dnnl::memory::desc;

/// The physical layout of one value. Row-major ("plain") is the layout of every state, feed and constant; temps keep
/// the layout of the primitive that made them until a reader needs another one.
struct Layout {
  bool plain = true;
  Desc desc;  ///< where oneDNN can name it: also of plain layouts; its dims may be another view of the same elements

  bool operator==(const Layout& other) const { return plain == other.plain && (plain || desc == other.desc); }
};

/// oneDNN's type for the storage of t (u32 as s32, bool as u8); undef where there is none.
dnnl::memory::data_type data_type(DType t);
/// Whether oneDNN can name the type: dtype and at most 12 dimensions.
bool nameable(const TensorType& t);
/// Row-major descriptor of these dimensions; of a scalar: one dimension of size 1.
Desc plain_desc(dnnl::memory::data_type t, const Shape& shape);
/// The row-major layout of a value.
Layout plain_layout(const TensorType& t);
/// The layout for a descriptor: plain when its strides are row-major and its dtype is that of the value.
Layout layout_of(const Desc& desc, const TensorType& t);
/// Bytes that a value takes in that layout.
size_t layout_bytes(const Layout& f, const TensorType& t);
/// The layout whose positions are those of `f` for a value of another dtype and the same shape; plain where oneDNN has
/// no name for it.
Layout layout_as(const Layout& f, const TensorType& t);
/// The loops that walk a layout in the order of its memory. Iteration i of loop k stands for `i * step[k]` along the
/// logical axis `axis[k]`; the loops are dense.
struct Physical {
  Shape dims;  ///< loop sizes, outermost first
  std::vector<size_t> axis;
  std::vector<int64_t> step;  ///< more than 1 where the layout has blocks
};
/// Finds them; false where the layout has padding, elements of another dtype or another rank.
bool physical_loops(const Layout& f, const TensorType& t, Physical& loops);

}  // namespace tutti::onednn
