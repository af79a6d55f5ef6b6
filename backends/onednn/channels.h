// Layouts of images with contiguous channels, as chosen by oneDNN's convolutions.
#pragma once
#include <array>

#include "backends/onednn/desc.h"

namespace tutti::onednn {

/// All channels contiguous (nhwc), or blocks of them.
struct Channels {
  dnnl::memory::format_tag tag = dnnl::memory::format_tag::nhwc;
  int64_t inner = 1;
  Desc of(const Shape& s, dnnl::memory::data_type t) const { return Desc(s, t, tag); }
  int64_t images(const Shape& s) const { return s[0] * ((s[1] + inner - 1) / inner); }
};

inline std::array<Channels, 3> channel_layouts(const Shape& s) {
  using tag = dnnl::memory::format_tag;
  return {Channels{tag::nhwc, s[1]}, Channels{tag::nChw16c, 16}, Channels{tag::nChw8c, 8}};
}

/// Gets the layout of input k. Returns false if it is not one of these.
inline bool channels_of(const NodeView& c, size_t k, Channels& layout) {
  const Shape& s = c.in(k).shape;
  Layout f = c.layout(k);
  if (f.plain || s.size() != 4) return false;
  Desc desc = desc_of(f);
  for (const Channels& option : channel_layouts(s))
    if (desc == option.of(s, desc.get_data_type())) {
      layout = option;
      return true;
    }
  return false;
}

}  // namespace tutti::onednn
