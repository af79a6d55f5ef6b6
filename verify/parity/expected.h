// Cases that a plugin says it cannot pass.
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
  std::string pattern;  ///< a case's text, with the wildcards of fnmatch(3)
  std::string reason;
  bool may_pass = false;  ///< else a case that passes is a failure
  bool matches(const std::string& text) const;
};

/// The list in the manifest of the device's plugin; empty where there is none. The first entry that fits a case counts.
/// Throws Error(invalid) naming the manifest and the entry that is not as above.
std::vector<Expected> expected_failures(const Device& device);
/// The list in that manifest.
std::vector<Expected> expected_failures(const std::filesystem::path& manifest);

/// Changes the result of a case of the device that the list names.
void settle(CaseResult& result, const Device& device, const std::vector<Expected>& list);

}  // namespace tutti::parity
