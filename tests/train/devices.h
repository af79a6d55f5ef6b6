// The devices that tests of every device run on.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/runtime/selector.h"

namespace tutti::test {

/// The ids of all that can be used here.
inline std::vector<std::string> usable() {
  std::vector<std::string> ids;
  for (const Ranked& r : rank_devices(Registry::instance()))
    if (r.device.unusable.empty()) ids.push_back(r.device.id);
  return ids;
}

/// An id as part of a test's name.
inline std::string test_name(const testing::TestParamInfo<std::string>& id) {
  std::string name = id.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}

}  // namespace tutti::test
