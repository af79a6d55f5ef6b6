// Entries of the kernel list for convolutions, pooling and their gradients.
#include "core/geometry/conv.h"
#include "sdk/rendered/entries.h"

namespace tutti::sdk {
namespace {

using codegen::LaunchList;
using NodeView = RenderNodeView;

// ---- convolutions

/// The convolution of a geometry with the node's epilogue.
codegen::Conv conv_of(const NodeView& c, const ConvGeometry& g) {
  if (c.in(0).dtype != c.in(1).dtype) throw decline("the operands have different dtypes");
  return {c.in(0).dtype, g.batch, g.channels, g.filters, g.groups, g.h, g.w, c.epilogue.bias, c.epilogue.relu};
}

template <bool library>
LaunchList conv(const NodeView& c) {
  expect(c, 2, {"stride", "padding", "dilation", "groups"});
  ConvGeometry g = conv_geometry(c.in(0).shape, c.in(1).shape, c.node().attrs);
  codegen::Conv p = conv_of(c, g);
  expect_result(c, {p.dtype, g.result()});
  return library ? library_of(c).conv(p, request_of(c)) : codegen::conv(c.traits, p);
}

template <bool library>
LaunchList conv_dx(const NodeView& c) {
  expect(c, 2, {"stride", "padding", "dilation", "groups", "shape"});
  const Shape& x = c.node().attrs.ints("shape");
  codegen::Conv p = conv_of(c, conv_geometry(x, c.in(1).shape, c.in(0).shape, c.node().attrs));
  expect_result(c, {p.dtype, x});
  return library ? library_of(c).conv_dx(p, request_of(c)) : codegen::conv_dx(c.traits, p);
}

template <bool library>
LaunchList conv_dw(const NodeView& c) {
  expect(c, 2, {"stride", "padding", "dilation", "groups", "shape"});
  const Shape& w = c.node().attrs.ints("shape");
  codegen::Conv p = conv_of(c, conv_geometry(c.in(0).shape, w, c.in(1).shape, c.node().attrs));
  expect_result(c, {p.dtype, w});
  return library ? library_of(c).conv_dw(p, request_of(c)) : codegen::conv_dw(c.traits, p);
}

// ---- pools

/// The pool of images `x`; sets `y` to the result's shape.
codegen::Pool pool_of(const NodeView& c, const Shape& x, Shape& y) {
  WindowGeometry g = pool_geometry(x, c.node().attrs);
  y = g.pooled();
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
  return {{"portable conv", "conv2d", declines<conv<false>>, conv<false>, {.bias = true, .relu = true}},
          {"portable conv", "conv2d_dx", declines<conv_dx<false>>, conv_dx<false>},
          {"portable conv", "conv2d_dw", declines<conv_dw<false>>, conv_dw<false>},
          {"portable pool", "max_pool2d", declines<max_pool>, max_pool},
          {"portable pool", "max_pool2d_dx", declines<max_pool_dx>, max_pool_dx},
          {"portable pool", "avg_pool2d", declines<avg_pool>, avg_pool},
          {"portable pool", "avg_pool2d_dx", declines<avg_pool_dx>, avg_pool_dx}};
}

std::vector<RenderEntry> library_conv_entries() {
  return {{"library",
           "conv2d",
           declines<conv<true>>,
           conv<true>,
           {.library = true, .compared = true, .bias = true, .relu = true}},
          {"library", "conv2d_dx", declines<conv_dx<true>>, conv_dx<true>, {.library = true, .compared = true}},
          {"library", "conv2d_dw", declines<conv_dw<true>>, conv_dw<true>, {.library = true, .compared = true}}};
}

}  // namespace tutti::sdk
