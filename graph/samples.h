// Draws the inputs of the samples in the op records, for gradcheck, parity, conformance and bench.
#pragma once
#include <optional>

#include "graph/op.h"

namespace tutti {

/// The input types of a sample. `floats` replaces every float dtype (f64 for gradcheck, bf16 for parity in bf16).
Types sample_types(const Sample& sample, std::optional<DType> floats = {});

/// The inputs of op.samples[which] (passed as `sample`, which may be modified). Every element is a pure function of
/// (seed, op name, which, input, element): floats uniform in the input's range, at least 0.02 away from the sample's
/// kinks, or a shuffled grid over the range if the sample asks for distinct elements; integers of the range, both ends
/// included; bool with equal probability. Rounded to the dtype.
std::vector<Tensor> draw(const OpDef& op, const Sample& sample, size_t which, uint64_t seed,
                         std::optional<DType> floats = {});

/// A random cotangent in [-1, 1] for result `result` of the same sample; no element is closer to 0 than 0.1.
Tensor draw_cotangent(const OpDef& op, const TensorType& type, size_t which, size_t result, uint64_t seed);

}  // namespace tutti
