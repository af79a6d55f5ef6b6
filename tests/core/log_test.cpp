#include "core/base/log.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "core/os/environment.h"

namespace tutti {
namespace {

// The variables are read once per process, so each case runs in a fresh one.
class LogDeathTest : public testing::Test {
 protected:
  void SetUp() override { testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
  void TearDown() override {
    os::unset_variable("TUTTI_LOG");
    os::unset_variable("TUTTI_TRACE");
  }
};

[[noreturn]] void speak() {
  logging::debug("t", "a {}", 1);
  logging::info("t", "b {}", 2);
  logging::warning("t", "c {}", 3);
  if (logging::traced("dispatch")) logging::write(logging::Level::debug, "dispatch", "d");
  if (logging::traced("patch")) logging::write(logging::Level::debug, "patch", "e");
  std::exit(0);
}

TEST_F(LogDeathTest, WarningsAreShownByDefault) {
  EXPECT_EXIT(speak(), testing::ExitedWithCode(0), "^tutti warning \\[t\\] c 3\n$");
}

TEST_F(LogDeathTest, TheVariableSetsTheLevel) {
  os::set_variable("TUTTI_LOG", "debug");
  EXPECT_EXIT(speak(), testing::ExitedWithCode(0),
              "^tutti debug \\[t\\] a 1\ntutti info \\[t\\] b 2\ntutti warning \\[t\\] c 3\n$");
}

TEST_F(LogDeathTest, ErrorsAloneWhenAsked) {
  os::set_variable("TUTTI_LOG", "error");
  EXPECT_EXIT(speak(), testing::ExitedWithCode(0), "^$");
}

TEST_F(LogDeathTest, ABadLevelIsNamedOnce) {
  os::set_variable("TUTTI_LOG", "loud");
  EXPECT_EXIT(speak(), testing::ExitedWithCode(0),
              "^tutti warning \\[log\\] TUTTI_LOG=loud: expected error, warning, info or debug\n"
              "tutti warning \\[t\\] c 3\n$");
}

TEST_F(LogDeathTest, TracedTopicsAreWholeNames) {
  os::set_variable("TUTTI_TRACE", "x,dispatch");
  EXPECT_EXIT(speak(), testing::ExitedWithCode(0), "^tutti warning \\[t\\] c 3\ntutti debug \\[dispatch\\] d\n$");
}

TEST_F(LogDeathTest, AllTracesEverything) {
  os::set_variable("TUTTI_TRACE", "all");
  EXPECT_EXIT(speak(), testing::ExitedWithCode(0), "dispatch\\] d\ntutti debug \\[patch\\] e\n$");
}

TEST(LogTest, LinesOfManyThreadsStayWhole) {
  testing::internal::CaptureStderr();
  std::vector<std::thread> threads;
  for (char c : {'a', 'b', 'c', 'd'})
    threads.emplace_back([c] {
      for (int i = 0; i < 50; ++i) logging::write(logging::Level::info, "t", std::string(100, c));
    });
  for (auto& t : threads) t.join();
  std::string text = testing::internal::GetCapturedStderr();
  size_t lines = 0;
  for (size_t at = 0; at < text.size(); ++lines) {
    size_t end = text.find('\n', at);
    std::string line = text.substr(at, end - at);
    ASSERT_EQ(line, "tutti info [t] " + std::string(100, line.back()));
    at = end + 1;
  }
  EXPECT_EQ(lines, 200u);
}

}  // namespace
}  // namespace tutti
