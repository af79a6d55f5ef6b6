// Cases with tensors above 2^31 bytes, which stay on the device; the host reads only parts of them.
#pragma once
#include "verify/parity/suite.h"

namespace tutti::parity {

constexpr std::string_view huge = "huge";

/// Whether the op has a huge case. There is one per memory access pattern: add writes more than 2^31 bytes of f32
/// (sample 0) and more than 2^31 elements of u8 (sample 1); sum, slice, gather and transpose read such a tensor of f32.
bool has_huge(const OpDef& op, size_t sample);

/// Runs the case in a separate session. All values are small integers, so results must be equal. The outcome is no_room
/// if the device reports too little memory or declines an op of this size.
CaseResult run_huge(const Device& device, const CaseId& id);

}  // namespace tutti::parity
