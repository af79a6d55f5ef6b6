// Internal: common code of the kernel list's make functions.
#pragma once
#include <fmt/format.h>

#include <initializer_list>
#include <string_view>

#include "sdk/library.h"
#include "sdk/rendered/kernels.h"

namespace tutti::sdk {

inline Error decline(const std::string& reason) { return {Code::declined, reason}; }

/// Checks the number of inputs, and that all attributes are known to the kernel. Throws Error(declined).
void expect(const RenderNodeView& c, size_t inputs, std::initializer_list<std::string_view> attrs);
/// Checks the type of the only result, if it is used. Throws Error(declined).
void expect_result(const RenderNodeView& c, const TensorType& want);
/// "" or the reason why the device cannot launch the work: too many buffers, too much scratch memory.
MatchResult declines_launches(const Traits& traits, const codegen::LaunchList& work);

/// Implements `declines` for entries whose make function throws if it declines.
template <codegen::LaunchList (*make)(const RenderNodeView&)>
MatchResult declines(const RenderNodeView& c) {
  try {
    return declines_launches(c.traits, make(c));
  } catch (const Error& e) {
    return e.what();
  }
}

/// Entries for convolutions, pooling and their gradients (conv.cpp).
std::vector<RenderEntry> conv_entries();
/// Entries for attention and its gradient (attention.cpp).
std::vector<RenderEntry> attention_entries();
/// The entry for values that the host exchanges (exchange.cpp).
std::vector<RenderEntry> exchange_entries();
/// Entries for recurrences and their gradients (recurrence.cpp).
std::vector<RenderEntry> recurrence_entries();
/// Entries for convolutions and their gradients with the device's library.
std::vector<RenderEntry> library_conv_entries();
/// The device's library. Throws Error(declined) if it has none.
const Library& library_of(const RenderNodeView& c);
/// The request to the library for the view.
LibraryRequest request_of(const RenderNodeView& c);

}  // namespace tutti::sdk
