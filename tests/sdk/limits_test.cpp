// Files of device limits: what they lower, and what is said of damaged ones.
#include "sdk/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/status.h"
#include "core/os/environment.h"
#include "tests/support/error_of.h"

namespace tutti::sdk {
namespace {

using testing::AllOf, testing::HasSubstr;

class LimitsTest : public testing::Test {
 protected:
  void TearDown() override {
    os::unset_variable("LIMITS_OF_THIS_TEST");
    std::filesystem::remove(file_);
  }
  Limits limits(const std::string& text) {
    std::ofstream(file_) << text;
    os::set_variable("LIMITS_OF_THIS_TEST", file_);
    return {"LIMITS_OF_THIS_TEST", "vulkan"};
  }
  /// The limits of a file with this section.
  Limits section(const std::string& text) { return limits(R"({"card": "A card", "vulkan": {)" + text + "}}"); }
  /// What is said of a file.
  std::string said(const std::string& text) {
    return test::error_from([&] { limits(text); }).what();
  }

  const std::string file_ =
      (std::filesystem::temp_directory_path() / ("limits-" + std::to_string(getpid()) + ".json")).string();
};

TEST_F(LimitsTest, WithoutAFileNothingChanges) {
  Limits none("LIMITS_OF_THIS_TEST", "vulkan");
  uint32_t n = 7;
  none.at_most("n", n);
  none.check_keys();
  EXPECT_FALSE(none.on());
  EXPECT_EQ(n, 7u);
}

TEST_F(LimitsTest, ValuesAreLoweredNeverRaised) {
  Limits l = section(R"("low": 3, "high": 9, "list": [1, 9, 2], "align": 64, "no": false, "yes": true, "bits": ["b"])");
  uint32_t low = 7, high = 7, align = 16, bits = 5;
  std::array<uint32_t, 3> list = {4, 4, 4};
  bool no = true, off = false;
  l.at_most("low", low);
  l.at_most("high", high);
  l.at_most("list", std::span(list));
  l.at_least("align", align);
  l.feature("no", no);
  l.feature("yes", off);
  constexpr std::pair<const char*, uint32_t> names[] = {{"a", 1}, {"b", 2}, {"c", 4}};
  l.only("bits", names, bits);
  EXPECT_EQ(low, 3u);
  EXPECT_EQ(high, 7u);
  EXPECT_EQ(list, (std::array<uint32_t, 3>{1, 4, 2}));
  EXPECT_EQ(align, 64u);
  EXPECT_FALSE(no);
  EXPECT_FALSE(off);
  EXPECT_EQ(bits, 0u);
  EXPECT_NO_THROW(l.check_keys());
  EXPECT_THAT(l.summary("gpu"), AllOf(HasSubstr("gpu has the limits of 'A card' (limits-"),
                                      HasSubstr("lower than what it reports are align, bits, list, low, no; "),
                                      HasSubstr("without effect: high, yes")));
}

TEST_F(LimitsTest, AnAlignmentIsNotLowered) {
  uint32_t align = 256;
  section(R"("align": 64)").at_least("align", align);
  EXPECT_EQ(align, 256u);
}

TEST_F(LimitsTest, AGpuIsNamed) {
  constexpr const char *gpus[] = {"gpu"}, *others[] = {"cpu"};
  EXPECT_TRUE(section(R"("type": "gpu")").is_gpu("type", gpus, others));
  EXPECT_FALSE(section(R"("type": "cpu")").is_gpu("type", gpus, others));
  EXPECT_FALSE(section("").is_gpu("type", gpus, others));
  Error e = test::error_from([&] { section(R"("type": "tpu")").is_gpu("type", gpus, others); });
  EXPECT_THAT(e.what(), HasSubstr("vulkan.type = \"tpu\": allowed are gpu, cpu"));
}

TEST_F(LimitsTest, DamagedFilesAreNamed) {
  EXPECT_THAT(said("{"), AllOf(HasSubstr("LIMITS_OF_THIS_TEST=" + file_), HasSubstr("not JSON")));
  EXPECT_THAT(said("3"), HasSubstr("a JSON object is needed"));
  EXPECT_THAT(said(R"({"card": 3, "vulkan": {}})"), HasSubstr("key 'card': a text is needed, not 3"));
  EXPECT_THAT(said(R"({"card": "x", "vulkan": 3})"), HasSubstr("key 'vulkan': an object is needed, not 3"));
  EXPECT_THAT(said(R"({"vulkan": {}})"), HasSubstr("key 'card' is missing"));
  EXPECT_THAT(said(R"({"card": "x"})"), HasSubstr("has no section 'vulkan'"));
  EXPECT_THAT(said(R"({"card": "x", "volcano": {}, "vulkan": {}})"), HasSubstr("unknown key 'volcano'"));
  os::set_variable("LIMITS_OF_THIS_TEST", "/");
  EXPECT_THAT(test::error_from([] { Limits("LIMITS_OF_THIS_TEST", "vulkan"); }).what(),
              HasSubstr("LIMITS_OF_THIS_TEST=/: the file cannot be read"));
}

TEST_F(LimitsTest, WrongValuesAreNamed) {
  uint32_t n = 8;
  std::array<uint32_t, 2> list = {8, 8};
  bool flag = true;
  auto of = [&](const std::string& text, auto&& ask) {
    return std::string(test::error_from([&] {
                         Limits l = section(text);
                         ask(l);
                       }).what());
  };
  auto number = [&](Limits& l) { l.at_most("n", n); };
  EXPECT_THAT(of(R"("n": "x")", number), HasSubstr("vulkan.n = \"x\": a whole number is needed"));
  EXPECT_THAT(of(R"("n": -1)", number), HasSubstr("vulkan.n = -1: "));
  EXPECT_THAT(of(R"("n": 1.5)", number), HasSubstr("vulkan.n = 1.5: "));
  EXPECT_THAT(of(R"("n": 0)", number), HasSubstr("must be at least 1"));
  EXPECT_THAT(of(R"("n": 1)", [&](Limits& l) { l.at_most("n", std::span(list)); }), HasSubstr("a list of whole"));
  EXPECT_THAT(of(R"("n": [1])", [&](Limits& l) { l.at_most("n", std::span(list)); }),
              HasSubstr("2 numbers are needed"));
  EXPECT_THAT(of(R"("n": [1, 0])", [&](Limits& l) { l.at_most("n", std::span(list)); }), HasSubstr("at least 1"));
  EXPECT_THAT(of(R"("n": 3)", [&](Limits& l) { l.at_least("n", n); }), HasSubstr("a power of two"));
  EXPECT_THAT(of(R"("n": 1)", [&](Limits& l) { l.feature("n", flag); }), HasSubstr("true or false is needed"));
  EXPECT_THAT(of(R"("n": [9, 5])", [&](Limits& l) { l.guaranteed("n", 2, 7); }),
              HasSubstr("at least 7, which kernels"));
  EXPECT_THAT(of(R"("m": 1)",
                 [&](Limits& l) {
                   l.unused({"n"});
                   l.check_keys();
                 }),
              HasSubstr("vulkan.m = 1: unknown key; allowed are n"));
}

}  // namespace
}  // namespace tutti::sdk
