// Patterns of nodes that a product or convolution can fuse.
#pragma once
#include <optional>

#include "sdk/program.h"

namespace tutti::sdk {

/// If `n` is x + other (one addition of two inputs): the other operand; else NONE.
uint32_t added_to(const Node& n, uint32_t x);
/// Whether `n` is max(x, 0) of its one input.
bool is_relu(const Node& n);
/// The bounds if `n` is min(max(x, low), high) of its one input; a bound may be infinite.
struct Bounds {
  double low, high;
};
std::optional<Bounds> bounds_of(const Node& n);
/// Whether `n` is the tanh form of gelu.
bool is_tanh_gelu(const Node& n);
/// Whether `bias` has one number per index of an axis of y (axes counted from the last).
bool is_bias(const TensorType& bias, const TensorType& y, size_t from_last);

/// A second result of a product: the sum of an operand over the inner dimension. a gives m numbers, b gives n. If the
/// product is the gradient of a layer's weights, this is the gradient of its bias.
enum class OperandSum { none, a, b };
/// The operand of `product` (a matmul of matrices, or conv2d_dw, whose b is the cotangent) that `sum` sums in this way.
OperandSum summed_operand(const Program& program, const Node& product, const Node& sum);

}  // namespace tutti::sdk
