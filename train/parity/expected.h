// Cases that a plugin says it cannot pass.
#pragma once
#include <string>
#include <vector>

#include "core/runtime/device.h"

namespace tutti::parity {

/// One entry of a manifest's list:
///
///     "expected_failures": [{"case": "cast:2:*", "reason": "no f64 on this device"}]
struct Expected {
  std::string pattern;  ///< a case's text, in which * stands for any characters
  std::string reason;
  bool matches(const std::string& text) const;
};

/// The list in the manifest of the device's plugin; empty where there is none. Throws Error(invalid) naming the
/// manifest when an entry is not as above.
std::vector<Expected> expected_failures(const Device& device);

}  // namespace tutti::parity
