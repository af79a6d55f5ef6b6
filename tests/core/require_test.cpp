#include "tests/support/require.h"

#include <gtest/gtest-spi.h>

#include <optional>

#include "core/os/environment.h"

namespace tutti::test {
namespace {

/// TUTTI_REQUIRE for the length of a test.
class Require : public testing::Test {
 protected:
  void TearDown() override {
    before_ ? os::set_variable("TUTTI_REQUIRE", *before_) : os::unset_variable("TUTTI_REQUIRE");
  }

  /// What a test reports that lacks `plugin`.
  static testing::TestPartResult::Type outcome(const std::string& plugin) {
    testing::TestPartResultArray reported;
    {
      testing::ScopedFakeTestPartResultReporter catcher(&reported);
      skip_without(plugin, "no device");
    }
    EXPECT_EQ(reported.size(), 1);
    return reported.GetTestPartResult(0).type();
  }

 private:
  static std::optional<std::string> variable() {
    const char* names = std::getenv("TUTTI_REQUIRE");
    return names ? std::optional<std::string>(names) : std::nullopt;
  }
  const std::optional<std::string> before_ = variable();
};

TEST_F(Require, NamedPluginsMayNotBeMissing) {
  os::set_variable("TUTTI_REQUIRE", "onednn,opencl");
  EXPECT_EQ(required_plugins(), (std::vector<std::string>{"onednn", "opencl"}));
  EXPECT_EQ(outcome("onednn"), testing::TestPartResult::kFatalFailure);
  EXPECT_EQ(outcome("opencl"), testing::TestPartResult::kFatalFailure);
  EXPECT_EQ(outcome("open"), testing::TestPartResult::kSkip);
  EXPECT_EQ(outcome("vulkan"), testing::TestPartResult::kSkip);
}

TEST_F(Require, NoneIsNamed) {
  os::unset_variable("TUTTI_REQUIRE");
  EXPECT_TRUE(required_plugins().empty());
  EXPECT_EQ(outcome("opencl"), testing::TestPartResult::kSkip);
  os::set_variable("TUTTI_REQUIRE", "");
  EXPECT_TRUE(required_plugins().empty());
}

}  // namespace
}  // namespace tutti::test
