// What an error says, for tests.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "core/base/status.h"

namespace tutti::test {

/// The message and remedy of the tutti::Error that f throws; a failure if it throws none or one of another code.
template <class F>
std::string error_of(F&& f, Code code = Code::invalid) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(static_cast<int>(e.code), static_cast<int>(code)) << e.what();
    return std::string(e.what()) + (e.remedy.empty() ? "" : " | " + e.remedy);
  }
  ADD_FAILURE() << "no error";
  return "";
}

/// The tutti::Error that f throws; one with code ok where it throws none.
template <class F>
Error error_from(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  return {Code::ok, "nothing was thrown"};
}

}  // namespace tutti::test
