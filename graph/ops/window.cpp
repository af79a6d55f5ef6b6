// Sliding windows over images and their adjoint, with a shared geometry and iteration.
#include "core/geometry/window.h"
#include "graph/op.h"
#include "graph/ops/add.h"
#include "graph/ops/pad.h"
#include "graph/ops/reshape.h"
#include "graph/ops/slice.h"

namespace tutti {

// public
extern TUTTI_API const OpDef window_op;
extern TUTTI_API const OpDef fold_op;
/// All windows of x[N, C, H, W]: y[N, C, kh, kw, OH, OW] holds x[n, c, oh*stride + ky*dilation - padding, …], `value`
/// outside the image; OH = floor((H + 2*padding - dilation*(kh - 1) - 1) / stride) + 1. Kernel, stride, padding
/// (symmetric) and dilation have two entries each: for H, for W.
TUTTI_API Value window(Value x, Ints kernel, Ints stride = {1, 1}, Ints padding = {0, 0}, Ints dilation = {1, 1},
                       double value = 0);
/// The adjoint of window: sums the windows into an image of `size` (H, W); also called col2im.
TUTTI_API Value fold(Value x, Ints size, Ints kernel, Ints stride = {1, 1}, Ints padding = {0, 0},
                     Ints dilation = {1, 1});
// end of public
namespace {

/// Calls visit(pixel, window element) for every element of y; pixel is -1 outside the image.
template <class F>
void each_tap(const WindowGeometry& g, F visit) {
  const WindowAxis &h = g.h, &w = g.w;
  size_t at = 0;
  for (int64_t p = 0; p < g.planes(); ++p)
    for (int64_t ky = 0; ky < h.kernel; ++ky)
      for (int64_t kx = 0; kx < w.kernel; ++kx)
        for (int64_t oy = 0; oy < h.count; ++oy)
          for (int64_t ox = 0; ox < w.count; ++ox, ++at) {
            int64_t y = h.at(oy, ky), x = w.at(ox, kx);
            bool inside = y >= 0 && y < h.size && x >= 0 && x < w.size;
            visit(inside ? (p * h.size + y) * w.size + x : -1, at);
          }
}

Types infer_window(std::span<const TensorType> in, const Attrs& a) {
  return {{in[0].dtype, window_geometry(in[0].shape, a).windows()}};
}

Types infer_fold(std::span<const TensorType> in, const Attrs& a) {
  return {{in[0].dtype, fold_geometry(in[0].shape, a).images()}};
}

/// The sum of one padded, dilated copy per tap.
Values add_taps(const Call& c) {
  Value x = c.in[0], y;
  const Shape& s = x.shape();
  WindowGeometry g = fold_geometry(s, c.a);
  const WindowAxis &h = g.h, &w = g.w;
  int64_t high = h.size + 2 * h.padding, wide = w.size + 2 * w.padding;
  int64_t rows = (h.count - 1) * h.stride + 1, columns = (w.count - 1) * w.stride + 1;
  for (int64_t ky = 0; ky < h.kernel; ++ky)
    for (int64_t kx = 0; kx < w.kernel; ++kx) {
      Value tap = slice(x, {0, 0, ky, kx, 0, 0}, {s[0], s[1], ky + 1, kx + 1, s[4], s[5]});
      int64_t top = ky * h.dilation, left = kx * w.dilation;
      tap = pad(reshape(tap, {s[0], s[1], s[4], s[5]}), {0, 0, top, left},
                {0, 0, high - top - rows, wide - left - columns}, {0, 0, h.stride - 1, w.stride - 1}, 0);
      y = y ? y + tap : tap;
    }
  return {slice(y, {0, 0, h.padding, w.padding}, {s[0], s[1], h.padding + h.size, w.padding + w.size})};
}

Sample window_sample(Shape x, Ints kernel, Ints stride, Ints padding, Ints dilation, double value = 0) {
  return {.shapes = {std::move(x)},
          .attrs = {{"kernel", std::move(kernel)},
                    {"stride", std::move(stride)},
                    {"padding", std::move(padding)},
                    {"dilation", std::move(dilation)},
                    {"value", Reals{value}}}};
}

Sample fold_sample(Shape x, Ints size, Ints kernel, Ints stride, Ints padding, Ints dilation) {
  return {.shapes = {std::move(x)},
          .attrs = {{"size", std::move(size)},
                    {"kernel", std::move(kernel)},
                    {"stride", std::move(stride)},
                    {"padding", std::move(padding)},
                    {"dilation", std::move(dilation)}}};
}

}  // namespace

Value window(Value x, Ints kernel, Ints stride, Ints padding, Ints dilation, double value) {
  return call(window_op, {x},
              {{"kernel", std::move(kernel)},
               {"stride", std::move(stride)},
               {"padding", std::move(padding)},
               {"dilation", std::move(dilation)},
               {"value", Reals{value}}});
}

Value fold(Value x, Ints size, Ints kernel, Ints stride, Ints padding, Ints dilation) {
  return call(fold_op, {x},
              {{"size", std::move(size)},
               {"kernel", std::move(kernel)},
               {"stride", std::move(stride)},
               {"padding", std::move(padding)},
               {"dilation", std::move(dilation)}});
}

const OpDef window_op{
    .name = "window",
    .doc = "y[n,c,ky,kx,oh,ow] = x[n, c, oh*stride + ky*dilation - padding, …], `value` outside the image",
    .inputs = {"x"},
    .attrs = {{"kernel", Ints{1, 1}},
              {"stride", Ints{1, 1}},
              {"padding", Ints{0, 0}},
              {"dilation", Ints{1, 1}},
              {"value", Reals{0.0}}},
    .ordered = true,
    .infer = infer_window,
    .reference =
        [](std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
          double outside = round_to(in[0].type.dtype, a.f("value"));
          each_tap(window_geometry(in[0].shape(), a), [&](int64_t pixel, size_t at) {
            out[0].at[at] = pixel < 0 ? outside : in[0].at[static_cast<size_t>(pixel)];
          });
        },
    .vjp =
        [](const VjpContext& g) {
          const Shape& x = g.in[0].shape();
          return Values{fold(g.d[0], {x[2], x[3]}, g.a.ints("kernel"), g.a.ints("stride"), g.a.ints("padding"),
                             g.a.ints("dilation"))};
        },
    .samples = {window_sample({2, 3, 5, 4}, {3, 2}, {1, 1}, {0, 0}, {1, 1}),
                window_sample({1, 2, 7, 6}, {3, 3}, {2, 1}, {1, 2}, {1, 2}, -1.5),
                window_sample({1, 1, 9, 5}, {2, 1}, {3, 2}, {0, 0}, {4, 1}),
                window_sample({0, 2, 4, 4}, {2, 2}, {2, 2}, {0, 0}, {1, 1}),
                window_sample({2, 5, 19, 23}, {3, 3}, {2, 2}, {1, 1}, {1, 1})}};

const OpDef fold_op{
    .name = "fold",
    .doc =
        "y[n,c,h,w] = sum of x[n,c,ky,kx,oh,ow] over h = oh*stride + ky*dilation - padding, …: the adjoint of window",
    .inputs = {"x"},
    .attrs = {{"size", Ints{1, 1}},
              {"kernel", Ints{1, 1}},
              {"stride", Ints{1, 1}},
              {"padding", Ints{0, 0}},
              {"dilation", Ints{1, 1}}},
    .ordered = true,
    .infer = infer_fold,
    .reference =
        [](std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
          each_tap(fold_geometry(in[0].shape(), a), [&](int64_t pixel, size_t at) {
            if (pixel >= 0) out[0].at[static_cast<size_t>(pixel)] += in[0].at[at];
          });
        },
    .decompose = add_taps,
    .vjp =
        [](const VjpContext& g) {
          return Values{
              window(g.d[0], g.a.ints("kernel"), g.a.ints("stride"), g.a.ints("padding"), g.a.ints("dilation"))};
        },
    .samples = {fold_sample({2, 3, 3, 2, 3, 3}, {5, 4}, {3, 2}, {1, 1}, {0, 0}, {1, 1}),
                fold_sample({1, 2, 3, 3, 4, 6}, {7, 6}, {3, 3}, {2, 1}, {1, 2}, {1, 2}),
                fold_sample({1, 1, 2, 1, 2, 3}, {9, 5}, {2, 1}, {3, 2}, {0, 0}, {4, 1}),
                fold_sample({0, 2, 2, 2, 2, 2}, {4, 4}, {2, 2}, {2, 2}, {0, 0}, {1, 1}),
                fold_sample({2, 5, 3, 3, 10, 12}, {19, 23}, {3, 3}, {2, 2}, {1, 1}, {1, 1})}};

}  // namespace tutti
