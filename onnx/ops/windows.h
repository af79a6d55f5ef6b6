// ONNX's windows over an image: attributes of convolutions and pools, with explicit padding.
#pragma once
#include "onnx/handler.h"

namespace tutti::onnx {

/// One entry per spatial axis.
struct Windows {
  Ints kernel, stride, dilation, begin, end;  ///< begin, end: padding before and after
  size_t rank() const { return kernel.size(); }
  bool symmetric() const { return begin == end; }
  bool dilated() const;
  /// The number of windows over an image of those sizes; `ceil`: the last may extend beyond the padding.
  Ints counts(const Shape& image, bool ceil) const;
  /// The spatial sizes of x [N, C, …].
  static Shape image(Value x);
};

/// The attribute auto_pad: NOTSET, VALID, SAME_UPPER or SAME_LOWER.
std::string auto_pad(const Context& c);
/// Reads kernel_shape (`kernel` if the attribute is omitted), strides, dilations, pads and auto_pad for x [N, C, …].
Windows windows_of(const Context& c, Value x, const Ints& kernel);
/// x padded with `value` along the spatial axes.
Value padded(Value x, const Ints& begin, const Ints& end, double value);
/// The convolution of an already padded x, without further padding.
Value convolve(const Context& c, Value x, Value w, const Windows& windows, int64_t groups, const Ints& padding);

/// The convolution that the node's attributes say, without its bias.
Value convolution(const Context& c, Value x, Value w);
/// y [N, C, …] plus the input `bias`, one number per channel, if the node has it.
Value with_bias(const Context& c, Value y, size_t bias = 2);

}  // namespace tutti::onnx
