// Window parameters for oneDNN, (height, width) each.
#pragma once
#include "backends/onednn/primitive.h"
#include "core/geometry/conv.h"

namespace tutti::onednn {

template <class Geometry>
dnnl::memory::dims strides(const Geometry& g) {
  return {g.h.stride, g.w.stride};
}
template <class Geometry>
dnnl::memory::dims dilates(const Geometry& g) {
  return {g.h.dilation - 1, g.w.dilation - 1};
}
template <class Geometry>
dnnl::memory::dims before(const Geometry& g) {
  return {g.h.padding, g.w.padding};
}
/// Padding at the end: extent of the last window beyond the image; negative if windows do not cover the end of the
/// image.
template <class Geometry>
dnnl::memory::dims after(const Geometry& g) {
  auto rest = [](const WindowAxis& a) { return (a.count - 1) * a.stride + a.reach() - a.size - a.padding; };
  return {rest(g.h), rest(g.w)};
}

}  // namespace tutti::onednn
