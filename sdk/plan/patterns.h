// Nodes that a product or convolution can compute along with its own result.
#pragma once
#include <optional>

#include "sdk/program.h"

namespace tutti::sdk {

/// When `n` is x + other (one addition of two inputs): the other operand; else NONE.
uint32_t added_to(const Node& n, uint32_t x);
/// Whether `n` is max(x, 0) of its one input.
bool is_relu(const Node& n);
/// When `n` limits its one input, min(max(x, low), high): to what; a bound may be infinite.
struct Limits {
  double low, high;
};
std::optional<Limits> limits_of(const Node& n);
/// Whether `n` is the tanh form of gelu.
bool is_tanh_gelu(const Node& n);
/// Whether `bias` is one number per index of an axis of y, counted from the last.
bool is_bias(const TensorType& bias, const TensorType& y, size_t from_last);

/// An operand of a product summed over the inner dimension as a second result: a gives m numbers, b gives n. Where the
/// product is the gradient to a layer's weights, that is the gradient to its bias.
enum class OperandSum { none, a, b };
/// Which operand of `product` (a matmul of matrices, or conv2d_dw, whose b is the cotangent) `sum` sums so.
OperandSum summed_operand(const Program& program, const Node& product, const Node& sum);

}  // namespace tutti::sdk
