// What roundings are worth in a formula at a point.
#pragma once
#include "train/parity/cases.h"

namespace tutti::parity {

/// The root mean square change of state k of the case's graph per unit of relative change of its inputs and of
/// everything computed on the way, in float64. 0 where the case has no float64 form, or where
/// the result jumps.
double conditioning(const CaseId& id, const Tensors& inputs, size_t k, const std::string& prefix);

}  // namespace tutti::parity
