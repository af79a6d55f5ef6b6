// TUTTI_REQUIRE, a list of plugins separated by commas: their devices have to be there, so that no test may do without.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/text.h"

namespace tutti::test {

/// The plugins that TUTTI_REQUIRE names.
inline std::vector<std::string> required_plugins() {
  const char* names = std::getenv("TUTTI_REQUIRE");
  return names ? split(names, ',') : std::vector<std::string>();
}

/// Skips the running test for want of what `plugin` needs; fails it where TUTTI_REQUIRE names the plugin.
inline void skip_without(const std::string& plugin, const std::string& why) {
  for (const std::string& required : required_plugins())
    if (required == plugin) FAIL() << "TUTTI_REQUIRE names " << plugin << ": " << why;
  GTEST_SKIP() << why;
}

}  // namespace tutti::test
