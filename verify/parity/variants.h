// Other shapes for the samples of op records, found by trial, so that ops need not declare them.
#pragma once
#include <optional>
#include <span>

#include "graph/op.h"

namespace tutti::parity {

/// Names of the variants. "views": inputs are transposes and slices (shapes unchanged). "batch": the leading dimension
/// is larger by 3, in one session with the recorded size. "large", "wide": the leading or the last dimension grows
/// until a tensor has more than 2^16 elements. "empty": the leading dimension is 0. "one": every dimension is 1, or the
/// leading one. "broadcast": inputs of shapes that broadcast. "state": inputs that are returned as results ("m" as
/// "m'") are states, updated in place over three steps.
std::span<const std::string_view> variants();

/// The sample with the shapes (and the attribute `shape`) of the variant, or none if the op does not accept these
/// shapes or the sample already has them. "views" and "state" do not change the sample.
std::optional<Sample> varied(const OpDef& op, const Sample& sample, std::string_view variant);

/// Pairs (input, result) of inputs that are returned under the same name with a "'". Empty except for optimizer
/// updates.
std::vector<std::pair<size_t, size_t>> updated_inputs(const OpDef& op);

}  // namespace tutti::parity
