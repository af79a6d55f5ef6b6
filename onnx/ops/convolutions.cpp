// Convolutions and transposed convolutions of 1-d to 3-d images.
#include <fmt/format.h>

#include <algorithm>

#include "graph/ops.h"
#include "onnx/ops/windows.h"

namespace tutti::onnx {

bool Windows::dilated() const {
  return std::any_of(dilation.begin(), dilation.end(), [](int64_t d) { return d != 1; });
}

Shape Windows::image(Value x) { return x.rank() < 2 ? Shape{} : Shape{x.shape().begin() + 2, x.shape().end()}; }

Ints Windows::counts(const Shape& image, bool ceil) const {
  Ints out;
  for (size_t k = 0; k < rank(); ++k) {
    int64_t room = image[k] + begin[k] + end[k] - dilation[k] * (kernel[k] - 1) - 1;
    if (ceil) room += stride[k] - 1;
    int64_t n = room < 0 ? 0 : room / stride[k] + 1;
    if (ceil && (n - 1) * stride[k] >= image[k] + begin[k]) --n;  // it would start in the padding at the end
    out.push_back(n);
  }
  return out;
}

std::string auto_pad(const Context& c) {
  std::string text = c.s("auto_pad", "NOTSET");
  if (text != "NOTSET" && text != "VALID" && text != "SAME_UPPER" && text != "SAME_LOWER")
    c.bad("auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  return text;
}

Windows windows_of(const Context& c, Value x, const Ints& kernel) {
  if (x.rank() < 3 || x.rank() > 5)
    c.unsupported(
        fmt::format("input with {} spatial dimensions (other than 1 to 3)", static_cast<int64_t>(x.rank()) - 2));
  size_t rank = x.rank() - 2;
  Windows w{.kernel = c.ints("kernel_shape", kernel),
            .stride = c.ints("strides", Ints(rank, 1)),
            .dilation = c.ints("dilations", Ints(rank, 1))};
  Ints pads = c.ints("pads", Ints(2 * rank, 0));
  if (w.kernel.size() != rank || w.stride.size() != rank || w.dilation.size() != rank || pads.size() != 2 * rank)
    c.bad(fmt::format("the lengths of kernel_shape, strides, dilations and pads do not match {} spatial dimensions",
                      rank));
  for (size_t k = 0; k < rank; ++k)
    if (w.kernel[k] < 1 || w.stride[k] < 1 || w.dilation[k] < 1)
      c.bad("every value of kernel_shape, strides and dilations must be at least 1");
  w.begin.assign(pads.begin(), pads.begin() + static_cast<int64_t>(rank));
  w.end.assign(pads.begin() + static_cast<int64_t>(rank), pads.end());
  double taps = 1;
  for (int64_t n : w.kernel) taps *= static_cast<double>(n);
  for (int64_t n : pads) taps = std::max(taps, static_cast<double>(n));
  if (taps > 1 << 24) c.unsupported("a kernel or padding of more than 2^24 elements");
  std::string automatic = auto_pad(c);
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER")
    for (size_t k = 0; k < rank; ++k) {
      int64_t size = x.shape()[k + 2], count = (size + w.stride[k] - 1) / w.stride[k];
      int64_t total = std::max<int64_t>(0, (count - 1) * w.stride[k] + w.dilation[k] * (w.kernel[k] - 1) + 1 - size);
      w.begin[k] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.end[k] = total - w.begin[k];
    }
  else if (automatic == "VALID")
    w.begin = w.end = Ints(rank, 0);
  for (size_t k = 0; k < rank; ++k)
    if (w.begin[k] < 0 || w.end[k] < 0) c.unsupported("negative padding");
  return w;
}

Value padded(Value x, const Ints& begin, const Ints& end, double value) {
  auto zero = [](int64_t n) { return n == 0; };
  if (std::all_of(begin.begin(), begin.end(), zero) && std::all_of(end.begin(), end.end(), zero)) return x;
  Ints low(2), high(2);
  low.insert(low.end(), begin.begin(), begin.end());
  high.insert(high.end(), end.begin(), end.end());
  return pad(x, low, high, Ints(x.rank()), value);
}

Value convolve(const Context& c, Value x, Value w, const Windows& o, int64_t groups, const Ints& padding) {
  switch (o.rank()) {
    case 1: return conv1d(x, w, {o.stride[0], padding[0], o.dilation[0], groups});
    case 2: return conv2d(x, w, {o.stride, padding, o.dilation, groups});
    case 3: return conv3d(x, w, {o.stride, padding, o.dilation, groups});
    default: c.unsupported(fmt::format("a convolution with {} spatial dimensions (other than 1 to 3)", o.rank()));
  }
}

Value convolution(const Context& c, Value x, Value w) {
  if (w.rank() != x.rank())
    c.bad(fmt::format("the weights have rank {}, but the input has rank {}: the ranks must be equal", w.rank(),
                      x.rank()));
  Windows o = windows_of(c, x, Windows::image(w));
  Ints padding = o.begin;
  if (!o.symmetric()) {
    x = padded(x, o.begin, o.end, 0);
    padding = Ints(o.rank(), 0);
  }
  return convolve(c, x, w, o, c.i("group", 1), padding);
}

Value with_bias(const Context& c, Value y, size_t bias) {
  if (!c.has(bias)) return y;
  Shape shape(y.rank(), 1);
  shape[1] = -1;
  return y + reshape(c.in(bias), shape);
}

namespace {

/// The full result, cropped or padded at both ends according to `pads`, because Tutti has one padding per axis.
Value conv_transpose(const Context& c) {
  Value x = c.in(0), w = c.in(1);
  if (w.rank() != x.rank())
    c.bad(fmt::format("the weights have rank {}, but the input has rank {}: the ranks must be equal", w.rank(),
                      x.rank()));
  Ints kernel = Windows::image(w);
  size_t rank = kernel.size();
  if (rank < 1 || rank > 3)
    c.unsupported(fmt::format("ConvTranspose with {} spatial dimensions (other than 1 to 3)", rank));
  Ints stride = c.ints("strides", Ints(rank, 1)), dilation = c.ints("dilations", Ints(rank, 1)),
       extra = c.ints("output_padding", Ints(rank, 0));
  Ints pads = c.ints("pads", Ints(2 * rank, 0)), wanted = c.ints("output_shape");
  if (stride.size() != rank || dilation.size() != rank || extra.size() != rank || pads.size() != 2 * rank ||
      (!wanted.empty() && wanted.size() < rank))
    c.bad(fmt::format(
        "the lengths of strides, dilations, pads, output_padding and output_shape do not match {} spatial dimensions",
        rank));
  if (wanted.size() > rank) wanted.erase(wanted.begin(), wanted.end() - static_cast<int64_t>(rank));
  std::string automatic = auto_pad(c);
  bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  Ints begin(rank), end(rank), zeros(rank, 0);
  for (size_t k = 0; k < rank; ++k) {
    int64_t size = x.shape()[k + 2], full = stride[k] * (size - 1) + dilation[k] * (kernel[k] - 1) + 1;
    if (!wanted.empty() || same) {
      int64_t to = wanted.empty() ? size * stride[k] : wanted[k], total = full + extra[k] - to;
      if (wanted.empty() && total < 0)
        c.unsupported(
            fmt::format("auto_pad {} with a kernel smaller than the stride {} (the specification and onnxruntime give "
                        "different sizes)",
                        automatic, stride[k]));
      if (to < 1 || to >= full + stride[k])
        c.bad(fmt::format("output size {} of spatial axis {}, expected 1 to {}", to, k, full + stride[k] - 1));
      total = std::max<int64_t>(total, 0);  // beyond it: zeros behind
      begin[k] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      end[k] = full - to - begin[k];
      continue;
    }
    if (automatic != "VALID") {
      begin[k] = pads[k];
      end[k] = pads[rank + k];
    }
    end[k] -= extra[k];  // below 0: appends zeros
  }
  int64_t groups = c.i("group", 1);
  Value y = rank == 1   ? conv_transpose1d(x, w, {stride[0], 0, 0, dilation[0], groups})
            : rank == 2 ? conv_transpose2d(x, w, {stride, zeros, zeros, dilation, groups})
                        : conv_transpose3d(x, w, {stride, zeros, zeros, dilation, groups});
  Ints amounts;
  for (size_t k = rank; k-- > 0;) {
    amounts.push_back(-begin[k]);
    amounts.push_back(-end[k]);
  }
  if (std::any_of(amounts.begin(), amounts.end(), [](int64_t n) { return n != 0; })) y = constant_pad(y, amounts);
  return with_bias(c, y);
}

}  // namespace

void add_convolutions(Table& t) {
  t["Conv"] = [](const Context& c) { return Values{with_bias(c, convolution(c, c.in(0), c.in(1)))}; };
  t["ConvTranspose"] = [](const Context& c) { return Values{conv_transpose(c)}; };
}

}  // namespace tutti::onnx
