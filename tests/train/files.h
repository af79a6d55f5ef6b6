// Help for tests that read and write files.
#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "tests/support/folder.h"  // IWYU pragma: export

namespace tutti::test {

inline void put(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(out.flush().good()) << path;
}

inline std::string get(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// The message of the Error that `f` throws; "" (and a failure) when it throws none.
template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return std::string(e.what()) + " | " + e.remedy;
  }
  ADD_FAILURE() << "no tutti::Error was thrown";
  return "";
}

/// Fails unless every part occurs in the text.
inline void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const auto& part : parts) EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' in: " << text;
}

}  // namespace tutti::test
