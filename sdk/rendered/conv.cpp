// Entries of the kernel list for convolutions, pooling and their gradients.
#include "core/geometry/conv.h"
#include "sdk/rendered/entries.h"

namespace tutti::sdk {
namespace {

using codegen::LaunchList;
using NodeView = RenderNodeView;

// ---- convolutions

/// Whether images are channels-last.
bool is_last(const NodeView& c) { return c.node().op.find("_nhwc") != std::string::npos; }
/// The shape of an operand with the channels first.
Shape as_first(const NodeView& c, const Shape& shape) { return is_last(c) ? channels_first(shape) : shape; }

/// The convolution of a geometry with the node's epilogue.
codegen::Conv conv_of(const NodeView& c, const ConvGeometry& g) {
  if (c.in(0).dtype != c.in(1).dtype) throw decline("the operands have different dtypes");
  return {c.in(0).dtype, g.batch, g.channels,      g.filters,       g.groups,
          g.h,           g.w,     c.epilogue.bias, c.epilogue.relu, is_last(c)};
}

/// A portable kernel's work on channels-last operands: copies with the channels first around it.
LaunchList around_copies(const NodeView& c, LaunchList core, const TensorType& result) {
  LaunchList list;
  auto copy = [&](const TensorType& type, const Ints& perm, int from, int to) {
    for (codegen::Launch& l : codegen::copy(c.traits, codegen::transpose_copy(type, perm)).launches) {
      for (int& buffer : l.buffers) buffer = buffer == 0 ? from : to;
      list.launches.push_back(std::move(l));
    }
  };
  const int y = c.epilogue.bias ? 3 : 2, x_first = y + 1, w_first = y + 2, y_first = y + 3;
  const Ints to_first = {0, 3, 1, 2}, to_last = {0, 2, 3, 1};
  copy(c.in(0), to_first, 0, x_first);
  copy(c.in(1), to_first, 1, w_first);
  for (codegen::Launch& l : core.launches) {
    for (int& buffer : l.buffers)
      buffer = buffer == 0 ? x_first : buffer == 1 ? w_first : buffer == y ? y_first : buffer > y ? buffer + 3 : buffer;
    list.launches.push_back(std::move(l));
  }
  copy({result.dtype, channels_first(result.shape)}, to_last, y_first, y);
  list.scratch_bytes = {num_bytes(c.in(0)), num_bytes(c.in(1)), num_bytes(result)};
  list.scratch_bytes.insert(list.scratch_bytes.end(), core.scratch_bytes.begin(), core.scratch_bytes.end());
  return list;
}

using LibraryConv = LaunchList (Library::*)(const codegen::Conv&, const LibraryRequest&) const;
using PortableConv = LaunchList (*)(const codegen::Target&, const codegen::Conv&);

template <bool library>
LaunchList convolution(const NodeView& c, codegen::Conv p, const TensorType& result, LibraryConv by_library,
                       PortableConv portable) {
  expect_result(c, result);
  if (library) return (library_of(c).*by_library)(p, request_of(c));
  if (!p.channels_last) return portable(c.traits, p);
  // Only in place of a library: without one, images with the channels first are faster.
  if (!c.declined) (library_of(c).*by_library)(p, {});
  p.channels_last = false;
  return around_copies(c, portable(c.traits, p), result);
}

template <bool library>
LaunchList conv(const NodeView& c) {
  expect(c, 2, {"stride", "padding", "dilation", "groups"});
  ConvGeometry g = conv_geometry(as_first(c, c.in(0).shape), as_first(c, c.in(1).shape), c.node().attrs);
  Shape y = is_last(c) ? channels_last(g.result()) : g.result();
  return convolution<library>(c, conv_of(c, g), {c.in(0).dtype, y}, &Library::conv, codegen::conv);
}

template <bool library>
LaunchList conv_dx(const NodeView& c) {
  expect(c, 2, {"stride", "padding", "dilation", "groups", "shape"});
  const Shape& x = c.node().attrs.ints("shape");
  ConvGeometry g =
      conv_geometry(as_first(c, x), as_first(c, c.in(1).shape), as_first(c, c.in(0).shape), c.node().attrs);
  return convolution<library>(c, conv_of(c, g), {c.in(0).dtype, x}, &Library::conv_dx, codegen::conv_dx);
}

template <bool library>
LaunchList conv_dw(const NodeView& c) {
  expect(c, 2, {"stride", "padding", "dilation", "groups", "shape"});
  const Shape& w = c.node().attrs.ints("shape");
  ConvGeometry g =
      conv_geometry(as_first(c, c.in(0).shape), as_first(c, w), as_first(c, c.in(1).shape), c.node().attrs);
  return convolution<library>(c, conv_of(c, g), {c.in(0).dtype, w}, &Library::conv_dw, codegen::conv_dw);
}

// ---- pools

/// The pool of images `x`; sets `y` to the result's shape.
codegen::Pool pool_of(const NodeView& c, const Shape& x, Shape& y) {
  WindowGeometry g = pool_geometry(as_first(c, x), c.node().attrs);
  y = is_last(c) ? channels_last(g.pooled()) : g.pooled();
  if (is_last(c)) return {c.in(0).dtype, x[0], g.h, g.w, x[3]};
  return {c.in(0).dtype, g.planes(), g.h, g.w};
}

LaunchList max_pool(const NodeView& c) {
  expect(c, 1, {"kernel", "stride", "padding", "dilation"});
  if (c.node().results.size() != 2) throw decline(fmt::format("{} results, expected 2", c.node().results.size()));
  Shape y;
  codegen::Pool p = pool_of(c, c.in(0).shape, y);
  if ((c.wants(0) && c.out(0) != TensorType{p.dtype, y}) || (c.wants(1) && c.out(1) != TensorType{DType::i32, y}))
    throw decline(
        fmt::format("expected results {} and an i32 index of the same shape", to_string(TensorType{p.dtype, y})));
  return codegen::max_pool(c.traits, p, c.wants(0), c.wants(1));
}

LaunchList max_pool_dx(const NodeView& c) {
  expect(c, 2, {"kernel", "stride", "padding", "dilation", "shape"});
  const Shape& x = c.node().attrs.ints("shape");
  Shape y;
  codegen::Pool p = pool_of(c, x, y);
  if (c.in(0).shape != y || c.in(1) != TensorType{DType::i32, y})
    throw decline(fmt::format("the output gradient must have shape {}, and the index must be i32 of the same shape",
                              to_string(y)));
  expect_result(c, {p.dtype, x});
  return codegen::max_pool_dx(c.traits, p);
}

bool padding_counts(const NodeView& c) { return c.node().attrs.i("count_include_pad") != 0; }

LaunchList avg_pool(const NodeView& c) {
  expect(c, 1, {"kernel", "stride", "padding", "count_include_pad"});
  Shape y;
  codegen::Pool p = pool_of(c, c.in(0).shape, y);
  expect_result(c, {p.dtype, y});
  return codegen::avg_pool(c.traits, p, padding_counts(c));
}

LaunchList avg_pool_dx(const NodeView& c) {
  expect(c, 1, {"kernel", "stride", "padding", "count_include_pad", "shape"});
  const Shape& x = c.node().attrs.ints("shape");
  Shape y;
  codegen::Pool p = pool_of(c, x, y);
  if (c.in(0).shape != y) throw decline(fmt::format("the output gradient must have shape {}", to_string(y)));
  expect_result(c, {p.dtype, x});
  return codegen::avg_pool_dx(c.traits, p, padding_counts(c));
}

}  // namespace

std::vector<RenderEntry> conv_entries() {
  constexpr Capabilities post_ops = {.bias = true, .relu = true};
  return {{"portable conv", "conv2d", declines<conv<false>>, conv<false>, post_ops},
          {"portable conv", "conv2d_dx", declines<conv_dx<false>>, conv_dx<false>},
          {"portable conv", "conv2d_dw", declines<conv_dw<false>>, conv_dw<false>},
          {"portable conv of copies", "conv2d_nhwc", declines<conv<false>>, conv<false>, post_ops},
          {"portable conv of copies", "conv2d_nhwc_dx", declines<conv_dx<false>>, conv_dx<false>},
          {"portable conv of copies", "conv2d_nhwc_dw", declines<conv_dw<false>>, conv_dw<false>},
          {"portable pool", "max_pool2d", declines<max_pool>, max_pool},
          {"portable pool", "max_pool2d_dx", declines<max_pool_dx>, max_pool_dx},
          {"portable pool", "avg_pool2d", declines<avg_pool>, avg_pool},
          {"portable pool", "avg_pool2d_dx", declines<avg_pool_dx>, avg_pool_dx},
          {"portable pool", "max_pool2d_nhwc", declines<max_pool>, max_pool},
          {"portable pool", "max_pool2d_nhwc_dx", declines<max_pool_dx>, max_pool_dx},
          {"portable pool", "avg_pool2d_nhwc", declines<avg_pool>, avg_pool},
          {"portable pool", "avg_pool2d_nhwc_dx", declines<avg_pool_dx>, avg_pool_dx}};
}

std::vector<RenderEntry> library_conv_entries() {
  constexpr Capabilities can = {.library = true, .compared = true},
                         post_ops = {.library = true, .compared = true, .bias = true, .relu = true};
  return {{"library", "conv2d", declines<conv<true>>, conv<true>, post_ops},
          {"library", "conv2d_dx", declines<conv_dx<true>>, conv_dx<true>, can},
          {"library", "conv2d_dw", declines<conv_dw<true>>, conv_dw<true>, can},
          {"library", "conv2d_nhwc", declines<conv<true>>, conv<true>, {.library = true, .bias = true, .relu = true}},
          {"library", "conv2d_nhwc_dx", declines<conv_dx<true>>, conv_dx<true>, {.library = true}},
          {"library", "conv2d_nhwc_dw", declines<conv_dw<true>>, conv_dw<true>, {.library = true}}};
}

}  // namespace tutti::sdk
