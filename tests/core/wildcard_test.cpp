// Patterns of names, against the C library's fnmatch where there is one.
#include "core/base/wildcard.h"

#include <gtest/gtest.h>
#ifndef _WIN32
#include <fnmatch.h>
#endif

#include <random>
#include <string>

namespace tutti {
namespace {

TEST(Wildcard, StandsForNames) {
  EXPECT_TRUE(matches_wildcard("*.weight", "encoder.0.weight"));
  EXPECT_TRUE(matches_wildcard("layer?.[wb]*", "layer1.bias"));
  EXPECT_FALSE(matches_wildcard("*.weight", "encoder.0.weights"));
  EXPECT_FALSE(matches_wildcard("", "a"));
  EXPECT_TRUE(matches_wildcard("*", ""));
  EXPECT_TRUE(matches_wildcard("a\\*b", "a*b"));
  EXPECT_FALSE(matches_wildcard("a\\*b", "axb"));
  EXPECT_TRUE(matches_wildcard("x[[:digit:]]", "x7"));
  EXPECT_TRUE(matches_wildcard("NVIDIA*h[12]00", "nvidia H200", true));
  EXPECT_FALSE(matches_wildcard("NVIDIA*", "nvidia H200"));
}

#ifndef _WIN32
TEST(Wildcard, IsTheSystems) {
  std::mt19937 random(7);
  const std::string pattern_letters = "ab*?[]!^-\\B.", text_letters = "abAB-]*[.\\";
  auto word = [&](const std::string& letters, size_t most) {
    std::string text;
    for (size_t n = random() % most; n > 0; --n) text += letters[random() % letters.size()];
    return text;
  };
  int matching = 0;
  for (int k = 0; k < 300000; ++k) {
    const std::string pattern = word(pattern_letters, 8), text = word(text_letters, 6);
    if (pattern.find("[.") != std::string::npos || pattern.ends_with('-')) continue;  // collating symbols, open ranges
    for (bool any_case : {false, true}) {
      const bool wanted = fnmatch(pattern.c_str(), text.c_str(), any_case ? FNM_CASEFOLD : 0) == 0;
      matching += wanted;
      ASSERT_EQ(matches_wildcard(pattern, text, any_case), wanted) << pattern << " on " << text << " " << any_case;
    }
  }
  EXPECT_GT(matching, 1000);
}
#endif

}  // namespace
}  // namespace tutti
