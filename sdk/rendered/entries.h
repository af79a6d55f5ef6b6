// Inside of the SDK: what the make functions of the kernel list share.
#pragma once
#include <fmt/format.h>

#include <initializer_list>
#include <string_view>

#include "sdk/library.h"
#include "sdk/rendered/kernels.h"

namespace tutti::sdk {

inline Error decline(const std::string& reason) { return {Code::declined, reason}; }

/// What a make function starts with: the number of inputs, and attributes that the kernel knows. Throws
/// Error(declined).
void expect(const RenderNodeView& c, size_t inputs, std::initializer_list<std::string_view> attrs);
/// The type of the only result, where it is read. Throws Error(declined).
void expect_result(const RenderNodeView& c, const TensorType& want);
/// "" or why the device cannot launch it: too many buffers, too much scratch memory.
Mismatch declines_launches(const Traits& traits, const codegen::LaunchList& work);

/// For entries whose make function throws where it cannot.
template <codegen::LaunchList (*make)(const RenderNodeView&)>
Mismatch declines(const RenderNodeView& c) {
  try {
    return declines_launches(c.traits, make(c));
  } catch (const Error& e) {
    return e.what();
  }
}

/// Convolutions and pools with their gradients (conv.cpp).
std::vector<RenderEntry> conv_entries();
/// Recurrences with their gradients (recurrence.cpp).
std::vector<RenderEntry> recurrence_entries();
/// Convolutions and their gradients by the device's library.
std::vector<RenderEntry> library_conv_entries();
/// The device's library; throws Error(declined) where it has none.
const Library& library_of(const RenderNodeView& c);
/// What is asked of it.
LibraryRequest request_of(const RenderNodeView& c);

}  // namespace tutti::sdk
