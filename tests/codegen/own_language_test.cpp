// A language of an author's own: a copy of a known one with parts replaced.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/base/status.h"
#include "kernels/codegen/kernel.h"
#include "kernels/codegen/precise.h"
#include "tests/codegen/cases.h"
#include "tests/codegen/host_run.h"
#include "tests/support/error_of.h"
#include "tests/support/require.h"

namespace tutti::codegen::cases {
namespace {

TEST(OwnLanguage, WordsAreReplacedByName) {
  Words words(
      "#define A 1\n#define F(x) x\nint f(int x) { return x; }\nint f(float x) {\n  return 0;\n}\ntypedef int I;\n");
  std::string all = words.text();
  EXPECT_EQ(
      all,
      "#define A 1\n#define F(x) x\nint f(int x) { return x; }\nint f(float x) {\n  return 0;\n}\ntypedef int I;\n");
  words.set("F", "#define F(x) (x)\n");
  words.set("f", "int f(int x) { return 2; }\n");
  EXPECT_EQ(words.text(), "#define A 1\n#define F(x) (x)\nint f(int x) { return 2; }\ntypedef int I;\n");
  Error e = test::error_from([&] { words.set("G", ""); });
  EXPECT_EQ(e.code, Code::invalid);
  EXPECT_NE(std::string(e.what()).find("does not define 'G'"), std::string::npos) << e.what();
  for (const char* name : {"PRECISE", "MUL_HI", "NAN_OF", "LID", "GRP", "BARRIER", "F32", "AS_F32", "FLOAT4"})
    for (const Language* l : {&Language::opencl_c(), &Language::glsl(), &Language::cuda_c(), &Language::cpp()}) {
      Words known = l->words;
      EXPECT_NO_THROW(known.set(name, "")) << l->name << ": " << name;
      EXPECT_LT(known.text().size(), l->words.text().size()) << l->name << ": " << name;
    }
}

TEST(OwnLanguage, WhatIsMissingOrWrongIsNamed) {
  for (const Language* l : {&Language::opencl_c(), &Language::glsl(), &Language::cuda_c(), &Language::cpp()})
    EXPECT_NO_THROW(check_language(*l));
  auto refused = [](const std::function<void(Language&)>& change) {
    Language l = Language::glsl();
    change(l);
    Error e = test::error_from([&] { check_language(l); });
    EXPECT_EQ(e.code, Code::invalid);
    return std::string(e.what());
  };
  EXPECT_EQ(refused([](Language& l) { l.open = nullptr; }), "the language 'GLSL' has no open");
  EXPECT_EQ(refused([](Language& l) { l.buffer = ""; }),
            "the language 'GLSL' has no buffer, though it has no pointers");
  EXPECT_EQ(refused([](Language& l) { l.views = {"vec4"}; }),
            "the language 'GLSL' has no three types in views: float4, int4, uint4");
  Error e = test::error_from([] { fill("a {nam}", {{"name", "x"}}); });
  EXPECT_EQ(e.code, Code::invalid);
  EXPECT_NE(e.remedy.find("its fields are {name}"), std::string::npos) << e.remedy;
  EXPECT_EQ(fill("{a}{{{b}}}{a}", {{"a", "x"}, {"b", "{y}"}}), "x{{y}}x");
}

TEST(OwnLanguage, EachOperationOfAPreciseStatementIsKeptApart) {
  auto kept = [](const std::string& line) { return keep_apart(line + "\n", "K({value})"); };
  EXPECT_EQ(kept("  PRECISE float x = a + b;"), "  float x = K(a + b);\n");
  EXPECT_EQ(kept("  PRECISE float n = (t * 0.6f + 12582912.0f) - 12582912.0f;  // why"),
            "  float n = K((K(K(t * 0.6f) + 12582912.0f)) - 12582912.0f);  // why\n");
  EXPECT_EQ(kept("    PRECISE float x = a - n * -2.12194440e-4f;"), "    float x = K(a - K(n * -2.12194440e-4f));\n");
  EXPECT_EQ(kept("  PRECISE float x = F32(p & 7u) * 9.3e-10f + f(a + b)[1];"),
            "  float x = K(K(F32(p & 7u) * 9.3e-10f) + f(a + b)[1]);\n");
  EXPECT_EQ(kept("  PRECISE float x = sqrt(a);"), "  float x = sqrt(a);\n");
  EXPECT_EQ(kept("  PRECISE float x = a < b ? a : b + c;"), "  float x = K(a < b ? a : b + c);\n");
  EXPECT_EQ(kept("  float x = a + b;"), "  float x = a + b;\n");
  EXPECT_EQ(keep_apart("FN float f(float a) {\n  PRECISE float y = a;\n  y = y + a;\n  z = y + a;\n}\n  y = y + a;\n",
                       "K({value})"),
            "FN float f(float a) {\n  float y = a;\n  y = K(y + a);\n  z = y + a;\n}\n  y = y + a;\n");
}

std::vector<Case> some_cases() {
  std::vector<Case> all;
  for (auto part : {elementwise_cases(), index_cases(), reduce_cases(), matmul_cases(), conv_cases(), pool_cases(),
                    recurrence_cases()})
    for (size_t i = 0; i < part.size(); i += 3) all.push_back(part[i]);
  return all;
}

// What examples/plugins/webgpu does, where a compiler of C++ can tell whether the numbers are still right.
TEST(OwnLanguage, KeptOperationsGiveTheSameNumbers) {
  Language own = Language::cpp();
  own.kept = "kept_({value})";
  own.words.set("PRECISE", "static inline float kept_(float x) { volatile float y = x; return y; }\n");
  own.neighbours =
      "#define {name}4(i) ({type}4{{{name}_[4 * (i)], {name}_[4 * (i) + 1], {name}_[4 * (i) + 2], {name}_[4 * (i) + "
      "3]}})\n"
      "#define {name}4_set(i, v) do {{ {type}4 v_ = (v); idx at_ = 4 * (i); {name}_[at_] = v_.x; {name}_[at_ + 1] = "
      "v_.y; "
      "{name}_[at_ + 2] = v_.z; {name}_[at_ + 3] = v_.w; }} while (false)\n";
  own.words.set("MUL_HI",
                "static inline uint MUL_HI(uint a, uint b) { return uint(uint64_t(a) * uint64_t(b) >> 32); }\n");
  Target t = target(Language::cpp(), false);
  t.language = &own;
  std::vector<Case> all = some_cases();
  std::vector<LaunchList> works;
  std::vector<std::string> texts;
  size_t kept = 0;
  for (const Case& c : all) {
    works.push_back(c.make(t));
    for (const Launch& d : works.back().launches) {
      texts.push_back(render(t, *d.kernel).text);
      EXPECT_EQ(texts.back().find("PRECISE"), std::string::npos) << texts.back();
      kept += texts.back().find(" = kept_(") != std::string::npos;
    }
  }
  EXPECT_GT(kept, 10u);
  HostKernels kernels(texts);
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(all[i].name);
    EXPECT_EQ(compare(all[i], run_on_host(kernels, t, works[i], all[i].inputs, all[i].expected)), "");
  }
}

TEST(OwnLanguage, OneViewOfABindingAndAFilter) {
  Language own = Language::glsl();
  own.views = {};
  own.read_only = "";
  own.neighbours =
      "#define {name}4(i) {type}4({name}_[4 * (i)], {name}_[4 * (i) + 1], {name}_[4 * (i) + 2], {name}_[4 * (i) + 3])\n"
      "#define {name}4_set(i, v) {name}_[4 * (i)] = (v).x\n";
  own.texels = "";
  own.filter = [](std::string text) { return text + "// filtered\n"; };
  size_t count = 0;
  for (bool cpu_like : {true, false}) {
    Target t = target(Language::glsl(), cpu_like);
    t.language = &own;
    t.max_texels = 0;
    for (const Case& c : some_cases())
      for (const Launch& d : c.make(t).launches) {
        std::string text = render(t, *d.kernel).text;
        EXPECT_TRUE(text.ends_with("// filtered\n"));
        std::set<std::string> bindings;
        for (size_t at = 0; (at = text.find("binding = ", at)) != text.npos; ++at)
          EXPECT_TRUE(bindings.insert(text.substr(at, text.find(')', at) - at)).second) << text;
        for (const char* absent : {"_4_", "readonly", "8bit_storage", "16bit_storage", "samplerBuffer"})
          EXPECT_EQ(text.find(absent), text.npos) << text;
        ++count;
      }
  }
  EXPECT_GT(count, 100u);
}

}  // namespace
}  // namespace tutti::codegen::cases
