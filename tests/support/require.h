// TUTTI_REQUIRE, a list of plugins separated by commas: their devices have to be there, so that no test may do without.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace tutti::test {

/// The plugins that TUTTI_REQUIRE names.
inline std::vector<std::string> required_plugins() {
  const char* names = std::getenv("TUTTI_REQUIRE");
  std::istringstream list(names ? names : "");
  std::vector<std::string> out;
  for (std::string name; std::getline(list, name, ',');) out.push_back(name);
  return out;
}

/// Skips the running test for want of what `plugin` needs; fails it where TUTTI_REQUIRE names the plugin.
inline void skip_without(const std::string& plugin, const std::string& why) {
  for (const std::string& required : required_plugins())
    if (required == plugin) FAIL() << "TUTTI_REQUIRE names " << plugin << ": " << why;
  GTEST_SKIP() << why;
}

}  // namespace tutti::test
