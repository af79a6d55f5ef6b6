// Recomputes NaN results of 16-bit products whose sums oneDNN pads with zeros.
#pragma once
#include <cstdint>
#include <string_view>

#include "backends/onednn/window.h"

namespace tutti::onednn {

/// Whether this implementation of oneDNN may multiply data after the last of a sum's `terms` by zero, which gives NaN
/// if the data is inf or NaN. bf16 and f16 products use groups of 2 (on AMX 32), and only one operand of the last group
/// is padded with zeros.
bool fills_sums(std::string_view implementation, DType t, int64_t terms);

/// The kernel of a convolution (a node conv2d, conv2d_dx or conv2d_dw, with the bias as last input) that recomputes NaN
/// results one by one from the inputs, so that only NaN caused by the inputs remain. `conv` itself if its sums are not
/// padded. Image padding is excluded here (see with_nonfinite_padding).
KernelPtr with_repair(const std::string& op, const ConvGeometry& g, KernelPtr conv, DType dtype, int threads);

/// A product's operands and result, all of the same rank: a [batch…, m, k], b [batch…, k, n], whose batch dimensions
/// may be 1; bias [1…, n], or an empty descriptor.
struct ProductDescs {
  Desc a, b, y, bias;
  int64_t terms() const { return a.get_dims().back(); }
};
/// The same for the product's kernel.
KernelPtr with_repair(const ProductDescs& p, KernelPtr product, DType dtype, int threads);

/// For tests on CPUs without such implementations: called with each result before it is checked; if set, all
/// convolutions and products are checked. Null otherwise.
using SpoilResult = void (*)(void* result, DType dtype, size_t bytes);
extern SpoilResult spoil_result;

}  // namespace tutti::onednn
