#include "core/geometry/quantized.h"

#include <fmt/format.h>

#include "core/base/status.h"

namespace tutti {

Shape quantized_shape(const TensorType& quants, const TensorType& scales, const TensorType& mins, int64_t bits,
                      int64_t group) {
  if (bits != 4 && bits != 8) throw invalid(fmt::format("bits = {}, expected 4 or 8", bits));
  if (group != quantized_block && group != quantized_block / 2)
    throw invalid(fmt::format("group = {}, expected 16 or 32", group));
  Shape y = scales.shape;
  if (quants.dtype != DType::u8 || !is_float(scales.dtype) || y.empty() || mins != scales)
    throw invalid(
        fmt::format("quants are {}, scales {}, mins {}: quants must be u8, and scales and mins must have the same "
                    "floating-point dtype and shape",
                    to_string(quants), to_string(scales), to_string(mins)));
  num_elements(Shape{y.back(), group});  // throws where the product overflows: of empty scales
  y.back() *= group;
  Shape bytes = y;
  bytes.back() = bytes.back() / 8 * bits;
  if (quants.shape != bytes || y.back() % quantized_block != 0)
    throw invalid(
        fmt::format("quants are {}, expected u8{} for scales {} of groups of {} with {} bits, in blocks of 32",
                    to_string(quants), to_string(bytes), to_string(scales), group, bits));
  return y;
}

Shape quantized_product(const TensorType& x, const TensorType& quants, const TensorType& scales, const TensorType& mins,
                        int64_t bits, int64_t group) {
  Shape w = quantized_shape(quants, scales, mins, bits, group);
  if (!is_float(x.dtype) || x.shape.size() != 2 || w.size() != 2 || x.shape[1] != w[1])
    throw invalid(
        fmt::format("x is {}, weights are {}: x must be floats [rows, inputs] and the weights [features, inputs]",
                    to_string(x), to_string(w)));
  return {x.shape[0], w[0]};
}

std::vector<TensorType> quantized_parts(int64_t rows, int64_t columns, QuantForm form) {
  const TensorType numbers{form.nested ? DType::u8 : DType::f16, {rows, columns / form.group}};
  std::vector<TensorType> all = {{DType::u8, {rows, columns / 8 * form.bits}}, numbers, numbers};
  if (form.nested) all.resize(5, {DType::f32, {rows, columns / quantized_superblock}});
  return all;
}

}  // namespace tutti
