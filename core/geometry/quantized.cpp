#include "core/geometry/quantized.h"

#include <fmt/format.h>

#include "core/base/status.h"

namespace tutti {

Shape quantized_shape(const TensorType& quants, const TensorType& scales, const TensorType& mins, int64_t bits) {
  if (bits != 4 && bits != 8) throw invalid(fmt::format("bits = {}, expected 4 or 8", bits));
  Shape y = scales.shape;
  if (quants.dtype != DType::u8 || !is_float(scales.dtype) || y.empty() || mins != scales)
    throw invalid(
        fmt::format("quants are {}, scales {}, mins {}: quants must be u8, and scales and mins must have the same "
                    "floating-point dtype and shape",
                    to_string(quants), to_string(scales), to_string(mins)));
  num_elements(Shape{y.back(), quantized_block});  // throws where the product overflows: of empty scales
  y.back() *= quantized_block;
  Shape bytes = y;
  bytes.back() = bytes.back() / 8 * bits;
  if (quants.shape != bytes)
    throw invalid(fmt::format("quants are {}, expected u8{} for scales {} of blocks of 32 with {} bits",
                              to_string(quants), to_string(bytes), to_string(scales), bits));
  return y;
}

Shape quantized_product(const TensorType& x, const TensorType& quants, const TensorType& scales, const TensorType& mins,
                        int64_t bits) {
  Shape w = quantized_shape(quants, scales, mins, bits);
  if (!is_float(x.dtype) || x.shape.size() != 2 || w.size() != 2 || x.shape[1] != w[1])
    throw invalid(
        fmt::format("x is {}, weights are {}: x must be floats [rows, inputs] and the weights [features, inputs]",
                    to_string(x), to_string(w)));
  return {x.shape[0], w[0]};
}

}  // namespace tutti
