// Memory layouts of values: row-major, or chosen by oneDNN.
#pragma once
#include <dnnl.hpp>

#include "core/base/shape.h"

namespace tutti::onednn {

using Desc = dnnl::memory::desc;

/// The physical layout of one value. Row-major ("plain") is the layout of every state, feed and constant; temps keep
/// the layout of the primitive that produced them until a reader needs another one.
struct Layout {
  bool plain = true;
  Desc desc;  ///< set if oneDNN can describe the layout, also for plain ones; its dims may be a reshaped view

  bool operator==(const Layout& other) const { return plain == other.plain && (plain || desc == other.desc); }
};

/// oneDNN's type for the storage of t (u32 as s32, bool as u8); undef if there is none.
dnnl::memory::data_type data_type(DType t);
/// Whether oneDNN can describe the type: supported dtype and at most 12 dimensions.
bool nameable(const TensorType& t);
/// Row-major descriptor with these dimensions; scalars have one dimension of size 1.
Desc plain_desc(dnnl::memory::data_type t, const Shape& shape);
/// The row-major layout of a value.
Layout plain_layout(const TensorType& t);
/// The layout of a descriptor: plain if its strides are row-major and its dtype is the value's.
Layout layout_of(const Desc& desc, const TensorType& t);
/// Bytes of a value in that layout.
size_t layout_bytes(const Layout& f, const TensorType& t);
/// The layout with the same element positions as `f` for a value of another dtype and the same shape; plain if oneDNN
/// cannot describe it.
Layout layout_as(const Layout& f, const TensorType& t);
/// Loops over a layout in memory order. Iteration i of loop k advances by `i * step[k]` along the logical axis
/// `axis[k]`; the loops are dense.
struct Physical {
  Shape dims;  ///< loop sizes, outermost first
  std::vector<size_t> axis;
  std::vector<int64_t> step;  ///< greater than 1 if the layout has blocks
};
/// Computes the loops. Returns false if the layout has padding, another dtype or another rank.
bool physical_loops(const Layout& f, const TensorType& t, Physical& loops);

}  // namespace tutti::onednn
