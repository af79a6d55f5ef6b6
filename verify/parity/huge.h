// Tensors above 2^31 bytes: they live on the device alone, and the host looks at parts of them.
#pragma once
#include "verify/parity/suite.h"

namespace tutti::parity {

constexpr std::string_view huge = "huge";

/// Whether the op has a huge case, one per way to walk through memory: add writes more than 2^31 bytes of f32 (sample
/// 0) and more than 2^31 elements of u8 (sample 1); sum, slice, gather and transpose read such a tensor of f32.
bool has_huge(const OpDef& op, size_t sample);

/// Runs it in a session of its own. Everything is a small whole number, so results must be equal. The outcome is
/// no_room where the device says that it has not the memory, or declines an op of this size.
CaseResult run_huge(const Device& device, const CaseId& id);

}  // namespace tutti::parity
