// Other shapes for the samples of op records, found by trying: an op needs to say nothing for them.
#pragma once
#include <optional>
#include <span>

#include "graph/op.h"

namespace tutti::parity {

/// One way to alter a sample. "views": inputs come from transposes and slices (shapes stay). "batch": the leading
/// dimension is larger by 3, beside the recorded size in one session. "large", "wide": the leading or the last
/// dimension grows until a tensor has more than 2^16 elements. "empty": the leading dimension is 0. "one": every
/// dimension is 1, or the leading one. "broadcast": inputs of shapes that broadcast. "state": inputs that come back as
/// results ("m" as "m'") are states, updated in place over three steps.
std::span<const std::string_view> variants();

/// The sample with the shapes (and the attribute `shape`) of that variant, or nothing where the op takes no such shapes
/// or the sample has them already. "views" and "state" leave it as it is.
std::optional<Sample> varied(const OpDef& op, const Sample& sample, std::string_view variant);

/// Which inputs come back under the same name with a "'": (input, result). Empty for all but optimizer updates.
std::vector<std::pair<size_t, size_t>> updated_inputs(const OpDef& op);

}  // namespace tutti::parity
