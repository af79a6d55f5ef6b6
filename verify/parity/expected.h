// Cases that a plugin declares as expected failures.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/runtime/device.h"

namespace tutti::parity {

struct CaseResult;

/// One entry of a manifest's list:
///
///     "expected_failures": [{"case": "cast:2:*", "reason": "no f64 on this device"},
///                           {"case": "conv2d:*", "reason": "no dilation", "may_pass": true}]
struct Expected {
  std::string pattern;  ///< pattern of case texts, as in fnmatch(3)
  std::string reason;
  bool may_pass = false;  ///< if false, a passing case is a failure
  bool matches(const std::string& text) const;
};

/// The list in the manifest of the device's plugin; empty if there is none. The first matching entry applies to a case.
/// Throws Error(invalid) naming the manifest and a malformed entry.
std::vector<Expected> expected_failures(const Device& device);
/// The list in a manifest file.
std::vector<Expected> expected_failures(const std::filesystem::path& manifest);

/// Applies the list to the result of a case.
void settle(CaseResult& result, const Device& device, const std::vector<Expected>& list);

}  // namespace tutti::parity
