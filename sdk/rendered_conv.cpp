// Entries of the kernel list for convolutions, pools and their gradients.
#include <algorithm>

#include "sdk/rendered_entries.h"

namespace tutti::sdk {
namespace {

using dialect::LaunchList;
using Case = RenderCase;

// ---- convolutions

/// The convolution of images and weights of these shapes; `y` is then its result's.
dialect::Conv conv_of(const Case& c, const Shape& x, const Shape& w, Shape& y) {
  if (x.size() != 4 || w.size() != 4) throw decline("images and weights of rank 4 are needed");
  if (c.in(0).dtype != c.in(1).dtype) throw decline("operands of several dtypes");
  const Attrs& a = c.node().attrs;
  dialect::Conv p;
  p.dtype = c.in(0).dtype;
  p.batch = x[0];
  p.channels = x[1];
  p.filters = w[0];
  p.groups = a.i("groups");
  if (p.groups < 1 || p.channels % p.groups || p.filters % p.groups || p.channels / p.groups != w[1])
    throw decline(fmt::format("{} groups do not fit images {} and weights {}", p.groups, to_string(x), to_string(w)));
  p.h = window_axis(a, 0, x[2], w[2]);
  p.w = window_axis(a, 1, x[3], w[3]);
  p.bias = c.epilogue.bias;
  p.relu = c.epilogue.relu;
  y = {p.batch, p.filters, p.h.count, p.w.count};
  return p;
}

template <bool library>
LaunchList conv(const Case& c) {
  expect(c, 2, {"stride", "padding", "dilation", "groups"});
  Shape y;
  dialect::Conv p = conv_of(c, c.in(0).shape, c.in(1).shape, y);
  expect_result(c, {p.dtype, y});
  return library ? library_of(c).conv(p, request_of(c)) : dialect::conv(c.traits, p);
}

template <bool library>
LaunchList conv_dx(const Case& c) {
  expect(c, 2, {"stride", "padding", "dilation", "groups", "shape"});
  const Shape& x = c.node().attrs.ints("shape");
  Shape y;
  dialect::Conv p = conv_of(c, x, c.in(1).shape, y);
  if (c.in(0).shape != y) throw decline(fmt::format("a cotangent {} is needed", to_string(y)));
  expect_result(c, {p.dtype, x});
  return library ? library_of(c).conv_dx(p, request_of(c)) : dialect::conv_dx(c.traits, p);
}

template <bool library>
LaunchList conv_dw(const Case& c) {
  expect(c, 2, {"stride", "padding", "dilation", "groups", "shape"});
  const Shape& w = c.node().attrs.ints("shape");
  Shape y;
  dialect::Conv p = conv_of(c, c.in(0).shape, w, y);
  if (c.in(1).shape != y) throw decline(fmt::format("a cotangent {} is needed", to_string(y)));
  expect_result(c, {p.dtype, w});
  return library ? library_of(c).conv_dw(p, request_of(c)) : dialect::conv_dw(c.traits, p);
}

// ---- pools

/// The pool of images `x`; `y` is then its result's shape.
dialect::Pool pool_of(const Case& c, const Shape& x, Shape& y) {
  if (x.size() != 4) throw decline("images of rank 4 are needed");
  const Attrs& a = c.node().attrs;
  dialect::Pool p{c.in(0).dtype, x[0] * x[1], window_axis(a, 0, x[2]), window_axis(a, 1, x[3])};
  y = {x[0], x[1], p.h.count, p.w.count};
  return p;
}

LaunchList max_pool(const Case& c) {
  expect(c, 1, {"kernel", "stride", "padding", "dilation"});
  if (c.node().results.size() != 2) throw decline(fmt::format("{} results, 2 are expected", c.node().results.size()));
  Shape y;
  dialect::Pool p = pool_of(c, c.in(0).shape, y);
  if ((c.wants(0) && c.out(0) != TensorType{p.dtype, y}) || (c.wants(1) && c.out(1) != TensorType{DType::i32, y}))
    throw decline(fmt::format("results {} and their i32 index are expected", to_string(TensorType{p.dtype, y})));
  return dialect::max_pool(c.traits, p, c.wants(0), c.wants(1));
}

LaunchList max_pool_dx(const Case& c) {
  expect(c, 2, {"kernel", "stride", "padding", "dilation", "shape"});
  const Shape& x = c.node().attrs.ints("shape");
  Shape y;
  dialect::Pool p = pool_of(c, x, y);
  if (c.in(0).shape != y || c.in(1) != TensorType{DType::i32, y})
    throw decline(fmt::format("a cotangent {} and an i32 index like it are needed", to_string(y)));
  expect_result(c, {p.dtype, x});
  return dialect::max_pool_dx(c.traits, p);
}

bool padding_counts(const Case& c) { return c.node().attrs.i("count_include_pad") != 0; }

LaunchList avg_pool(const Case& c) {
  expect(c, 1, {"kernel", "stride", "padding", "count_include_pad"});
  Shape y;
  dialect::Pool p = pool_of(c, c.in(0).shape, y);
  expect_result(c, {p.dtype, y});
  return dialect::avg_pool(c.traits, p, padding_counts(c));
}

LaunchList avg_pool_dx(const Case& c) {
  expect(c, 1, {"kernel", "stride", "padding", "count_include_pad", "shape"});
  const Shape& x = c.node().attrs.ints("shape");
  Shape y;
  dialect::Pool p = pool_of(c, x, y);
  if (c.in(0).shape != y) throw decline(fmt::format("a cotangent {} is needed", to_string(y)));
  expect_result(c, {p.dtype, x});
  return dialect::avg_pool_dx(c.traits, p, padding_counts(c));
}

}  // namespace

std::vector<RenderEntry> conv_entries() {
  return {{conv_entry, "conv2d", declines<conv<false>>, conv<false>},
          {"portable conv", "conv2d_dx", declines<conv_dx<false>>, conv_dx<false>},
          {"portable conv", "conv2d_dw", declines<conv_dw<false>>, conv_dw<false>},
          {"portable pool", "max_pool2d", declines<max_pool>, max_pool},
          {"portable pool", "max_pool2d_dx", declines<max_pool_dx>, max_pool_dx},
          {"portable pool", "avg_pool2d", declines<avg_pool>, avg_pool},
          {"portable pool", "avg_pool2d_dx", declines<avg_pool_dx>, avg_pool_dx}};
}

std::vector<RenderEntry> library_conv_entries() {
  return {{library_entry, "conv2d", declines<conv<true>>, conv<true>},
          {library_entry, "conv2d_dx", declines<conv_dx<true>>, conv_dx<true>},
          {library_entry, "conv2d_dw", declines<conv_dw<true>>, conv_dw<true>}};
}

}  // namespace tutti::sdk
