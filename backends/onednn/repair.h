// Sums of two-byte products that oneDNN fills up with zeros: computed again where a NaN came out.
#pragma once
#include <cstdint>
#include <string_view>

#include "backends/onednn/window.h"

namespace tutti::onednn {

/// Whether that implementation of oneDNN's may multiply what lies behind the last of a sum's `terms` by zero, which
/// gives NaN where that is inf or NaN. Products of bf16 and f16 go by pairs, on AMX by 32, and what fills up the last
/// group is zero on one side alone.
bool fills_sums(std::string_view implementation, DType t, int64_t terms);

/// The kernel of a convolution (a node conv2d, conv2d_dx or conv2d_dw; results and inputs as theirs, a bias last) whose
/// NaN are computed again from the inputs, one by one: those that stay are the inputs' own. `conv` itself where its
/// sums are not filled up. What lies outside of images counts for nothing (with_nonfinite_padding does that).
KernelPtr with_repair(const std::string& op, const ConvGeometry& g, KernelPtr conv, DType dtype, int threads);

/// A product's operands and result, all of one rank: a [batch…, m, k], b [batch…, k, n], of which batch dimensions may
/// be 1; bias [1…, n], or without a size.
struct ProductDescs {
  Desc a, b, y, bias;
  int64_t terms() const { return a.get_dims().back(); }
};
/// The same for the product's kernel.
KernelPtr with_repair(const ProductDescs& p, KernelPtr product, DType dtype, int threads);

/// For tests on CPUs without such implementations: called with each result before it is looked at, and then every
/// convolution and product is looked at. Null but there.
using SpoilResult = void (*)(void* result, DType dtype, size_t bytes);
extern SpoilResult spoil_result;

}  // namespace tutti::onednn
