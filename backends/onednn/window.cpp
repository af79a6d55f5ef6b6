#include "backends/onednn/window.h"

#include <fmt/format.h>

namespace tutti::onednn {
namespace {

constexpr int64_t limit = int64_t{1} << 30;

int64_t pair_entry(const Attrs& a, const char* name, size_t axis, int64_t least) {
  const Ints& list = a.ints(name);
  if (list.size() != 2 || list[axis] < least || list[axis] > limit)
    throw invalid(fmt::format("{} {}: two numbers of at least {} are needed", name, to_string(list), least));
  return list[axis];
}

/// Padding at the end that makes (size + before + after - reach) / stride + 1 exactly the number of windows.
int64_t end_padding(const kernels::WindowAxis& a) {
  return (a.count - 1) * a.stride + a.dilation * (a.kernel - 1) + 1 - a.size - a.padding;
}

}  // namespace

kernels::WindowAxis window_axis(const Attrs& a, size_t axis, int64_t size, int64_t kernel) {
  kernels::WindowAxis w{size,
                        kernel,
                        pair_entry(a, "stride", axis, 1),
                        pair_entry(a, "padding", axis, 0),
                        a.has("dilation") ? pair_entry(a, "dilation", axis, 1) : 1,
                        0};
  int64_t room = size + 2 * w.padding - w.dilation * (kernel - 1) - 1;
  if (kernel < 1 || kernel > limit || size > limit || room < 0)
    throw invalid(fmt::format("a window of {} taps with dilation {} does not fit into {} with padding {}", kernel,
                              w.dilation, size, w.padding));
  w.count = room / w.stride + 1;
  return w;
}

ConvGeometry conv_geometry(const Shape& x, const Shape& w, const Attrs& a) {
  if (x.size() != 4 || w.size() != 4) throw invalid("images and weights of rank 4 are needed");
  int64_t groups = a.i("groups");
  if (groups < 1 || x[1] % groups || w[0] % groups || x[1] / groups != w[1])
    throw invalid(fmt::format("images {}, weights {} and {} groups do not fit", to_string(x), to_string(w), groups));
  ConvGeometry g{x, w, {}, groups, {window_axis(a, 0, x[2], w[2]), window_axis(a, 1, x[3], w[3])}};
  g.y = {x[0], w[0], g.axis[0].count, g.axis[1].count};
  return g;
}

dnnl::memory::dims ConvGeometry::after() const { return {end_padding(axis[0]), end_padding(axis[1])}; }

double ConvGeometry::operations() const {
  return 2.0 * static_cast<double>(num_elements(y)) * static_cast<double>(w[1] * w[2] * w[3]);
}

PoolGeometry pool_geometry(const Shape& x, const Attrs& a) {
  if (x.size() != 4) throw invalid("images of rank 4 are needed");
  PoolGeometry g{
      x,
      {},
      {window_axis(a, 0, x[2], pair_entry(a, "kernel", 0, 1)), window_axis(a, 1, x[3], pair_entry(a, "kernel", 1, 1))}};
  g.y = {x[0], x[1], g.axis[0].count, g.axis[1].count};
  return g;
}

dnnl::memory::dims PoolGeometry::after() const { return {end_padding(axis[0]), end_padding(axis[1])}; }

}  // namespace tutti::onednn
