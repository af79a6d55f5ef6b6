#include "core/base/attrs.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace tutti {
namespace {

using test::error_of;

const Attrs sample = {{"axes", Ints{0, 1}}, {"keep", Ints{1}}, {"alpha", Reals{0.5}}, {"mode", std::string("same")}};

TEST(AttrsTest, GettersGiveWhatIsThere) {
  EXPECT_EQ(sample.i("keep"), 1);
  EXPECT_EQ(sample.f("alpha"), 0.5);
  EXPECT_EQ(sample.ints("axes"), (Ints{0, 1}));
  EXPECT_EQ(sample.reals("alpha"), Reals{0.5});
  EXPECT_EQ(sample.text("mode"), "same");
  EXPECT_TRUE(sample.has("mode"));
  EXPECT_FALSE(sample.has("none"));
}

TEST(AttrsTest, GettersSayWhatDoesNotFit) {
  EXPECT_EQ(error_of([] { sample.i("none"); }), "no attribute 'none'");
  EXPECT_EQ(error_of([] { sample.i("axes"); }), "attribute 'axes' has 2 elements, expected 1");
  EXPECT_EQ(error_of([] { sample.f("keep"); }), "attribute 'keep' is integers, not reals");
  EXPECT_EQ(error_of([] { sample.ints("mode"); }), "attribute 'mode' is a string, not integers");
}

TEST(AttrsTest, DefaultsAreOverridden) {
  Attrs merged = Attrs{{"alpha", Reals{2}}}.over(sample);
  EXPECT_EQ(merged.f("alpha"), 2);
  EXPECT_EQ(merged.text("mode"), "same");
  EXPECT_EQ(error_of([] { Attrs{{"beta", Reals{2}}}.over(sample); }), "unknown attribute 'beta'");
  EXPECT_EQ(error_of([] { Attrs{{"alpha", Ints{2}}}.over(sample); }), "attribute 'alpha' must be reals, not integers");
}

TEST(AttrsTest, TextIsSortedByName) {
  EXPECT_EQ(sample.to_string(), "{alpha=0.5, axes=[0, 1], keep=1, mode=\"same\"}");
  EXPECT_EQ(Attrs().to_string(), "");
}

}  // namespace
}  // namespace tutti
