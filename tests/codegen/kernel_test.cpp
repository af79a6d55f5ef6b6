// Reading kernel texts: what is malformed is named by file and line.
#include <gtest/gtest.h>

#include <regex>

#include "core/base/status.h"
#include "kernels/codegen/kernel.h"
#include "tests/support/error_of.h"

namespace tutti::codegen {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse(text, "some.k", {{"T", Element::f32}});
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(KernelText, ReadsAHeader) {
  Kernel k = parse(
      "// about\nkernel twice\nin x T  // read\nout y f16\nvalue N\nshared float tile[4]\nlocal 8 2\n---\n  "
      "y_set(ITEM, x(ITEM));\n",
      "a.k", {{"T", Element::i32}});
  EXPECT_EQ(k.name, "twice");
  ASSERT_EQ(k.params.size(), 2u);
  EXPECT_EQ(k.params[0].element, Element::i32);
  EXPECT_TRUE(k.params[1].written);
  EXPECT_EQ(k.local, (std::array<uint32_t, 3>{8, 2, 1}));
  EXPECT_EQ(k.shared, std::vector<std::string>{"float tile[4]"});
  EXPECT_EQ(k.body, "  y_set(ITEM, x(ITEM));\n");
}

TEST(KernelText, NamesTheLineOfAMistake) {
  EXPECT_EQ(error_of("kernel a\nin x Q\n---\n"), "some.k:2: the type Q is not bound");
  EXPECT_EQ(error_of("kernel a\nin x\n---\n"), "some.k:2: in NAME TYPE expected");
  EXPECT_EQ(error_of("kernel a\nin x f32 more\n---\n"), "some.k:2: more: more than expected");
  EXPECT_NE(error_of("kernel a\ninput x T\n---\n").find("some.k:2: input: not one of"), std::string::npos);
  EXPECT_EQ(error_of("kernel a\nin x T\n"), "some.k:2: there is no line --- before the body");
  EXPECT_EQ(error_of("kernel a\n---\n  f(x;\n}\n"), "some.k:4: } closes no bracket");
  EXPECT_EQ(error_of("kernel a\n---\n  if (x) {\n"), "some.k:4: } is missing");
  EXPECT_EQ(error_of("kernel a\n---\n  f(x));\n"), "some.k:3: ) closes no bracket");
  EXPECT_EQ(error_of("in x T\n---\n"), "some.k:1: there is no line kernel NAME");
}

TEST(KernelText, WhatAKernelIsGivenItUses) {
  for (const std::string& name : portable_names()) {
    if (name == "math") continue;
    Kernel k = portable(name, {{"T", Element::f32}, {"Y", Element::f32}, {"A", Element::f32}});
    for (auto& [value, text] : k.values) {
      std::string word = value.substr(0, value.find('('));
      bool counts = std::any_of(k.repeats.begin(), k.repeats.end(), [&](auto& r) { return r.second == word; });
      EXPECT_TRUE(counts || std::regex_search(k.body, std::regex("\\b" + word + "\\b"))) << k.file << ": " << word;
    }
  }
}

TEST(KernelText, AValueThatNobodyGaveIsNamed) {
  Kernel k = parse("kernel a\nout y f32\nvalue N\n---\n  y_set(0, N);\n", "some.k", {});
  try {
    render({}, k);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "some.k: kernel a: N has no value");
  }
  k.set("N", 3);
  EXPECT_NE(render({}, k).text.find("#define N 3\n"), std::string::npos);
}

TEST(KernelText, IndicesGrowWithTheTensor) {
  Kernel k = portable("fill", {{"T", Element::f32}});
  k.set("TOTAL", 5);
  k.set("VALUE", "0.0f");
  k.set("GROUP", "IDX(GRP(0))");
  k.elements = uint64_t{1} << 33;
  EXPECT_NE(render({}, k).text.find("typedef long idx;"), std::string::npos);
  Error e = test::error_from([&] { dispatch({Language::glsl}, k, 1, {0}); });
  EXPECT_EQ(e.code, Code::declined);
  EXPECT_NE(std::string(e.what()).find("more than GLSL can number"), std::string::npos) << e.what();
  k.elements = 1000;
  EXPECT_NE(render({}, k).text.find("typedef int idx;"), std::string::npos);
}

TEST(KernelText, ALaunchIsSplitOverDimensions) {
  Kernel k = portable("fill", {{"T", Element::f32}});
  k.set("TOTAL", 5);
  k.set("VALUE", "0.0f");
  Launch d = dispatch({}, k, 200000, {0});
  EXPECT_LE(d.groups[0], 65535u);
  EXPECT_GE(uint64_t{d.groups[0]} * d.groups[1] * d.groups[2], 200000u);
}

}  // namespace
}  // namespace tutti::codegen
