// Reading kernel texts: what is malformed is named by file and line.
#include <gtest/gtest.h>

#include <regex>
#include <set>

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
  EXPECT_EQ(error_of("kernel a\nin x Q\n---\n"), "some.k:2: the type Q is not defined");
  EXPECT_EQ(error_of("kernel a\nin x\n---\n"), "some.k:2: in NAME TYPE expected");
  EXPECT_EQ(error_of("kernel a\nin x f32 more\n---\n"), "some.k:2: unexpected 'more' at the end of the line");
  EXPECT_NE(error_of("kernel a\ninput x T\n---\n").find("some.k:2: unknown word 'input', expected one of"),
            std::string::npos);
  EXPECT_EQ(error_of("kernel a\nin x T\n"), "some.k:2: the line '---' before the body is missing");
  EXPECT_EQ(error_of("kernel a\n---\n  f(x;\n}\n"), "some.k:4: unmatched '}'");
  EXPECT_EQ(error_of("kernel a\n---\n  if (x) {\n"), "some.k:4: '}' is missing");
  EXPECT_EQ(error_of("kernel a\n---\n  f(x));\n"), "some.k:3: unmatched ')'");
  EXPECT_EQ(error_of("in x T\n---\n"), "some.k:1: the line 'kernel NAME' is missing");
}

TEST(KernelText, WhatAKernelIsGivenItUses) {
  for (const std::string& name : portable_names()) {
    if (name == "math") continue;
    Kernel k = portable(name, {{"T", Element::f32}, {"Y", Element::f32}, {"A", Element::f32}, {"S", Element::f32}});
    std::vector<std::string> given;
    for (auto& [value, text] : k.values) given.push_back(value.substr(0, value.find('(')));
    for (const Number& n : k.numbers) given.push_back(n.name);
    for (const std::string& word : given) {
      bool counts = std::any_of(k.repeats.begin(), k.repeats.end(), [&](auto& r) { return r.second == word; });
      const std::regex whole("\\b" + word + "\\b");
      bool sizes = std::any_of(k.shared.begin(), k.shared.end(), [&](auto& s) { return std::regex_search(s, whole); });
      bool used = std::regex_search(k.body, whole) || std::regex_search(k.functions, whole);
      EXPECT_TRUE(counts || sizes || used) << k.file << ": " << word;
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

TEST(KernelText, NumbersAreDataWhereCompilingIsDear) {
  auto source = [](const Target& t, int64_t n, int64_t s) {
    Kernel k = parse("kernel a\nout y i32\nnumber N\nstride S\ndata D\n---\n  y_set(N * S, D);\n", "some.k", {});
    k.set("N", n);
    k.set("S", s);
    k.set("D", 7);
    return render(t, k);
  };
  Target cpu{&Language::opencl_c()}, gpu{&Language::opencl_c()};
  cpu.cpu_like = true;
  EXPECT_EQ(source(cpu, 30, 4).text, source(cpu, -5, 9).text);
  EXPECT_EQ(source(cpu, 30, 4).numbers, (std::vector<uint32_t>{30, 4, 7}));
  EXPECT_EQ(source(cpu, -5, 4).numbers[0], static_cast<uint32_t>(-5));
  EXPECT_NE(source(cpu, 30, 4).text, source(cpu, 30, 1).text);  // a stride of 1 is known to the compiler
  EXPECT_EQ(source(cpu, 30, 1).numbers, (std::vector<uint32_t>{30, 7}));
  EXPECT_EQ(source(gpu, 30, 4).numbers, (std::vector<uint32_t>{7}));
  EXPECT_NE(source(gpu, -5, 4).text.find("#define N (-5)\n"), std::string::npos) << source(gpu, -5, 4).text;
  EXPECT_NE(source(cpu, int64_t{3} << 30, 4).text.find("idx N = IDX(U32(numbers(0)));"), std::string::npos);
  EXPECT_NE(source(cpu, int64_t{1} << 40, 4).text.find("#define N 1099511627776\n"), std::string::npos);
}

TEST(KernelText, ProductsOfOtherWidthsShareATextWhereCompilingIsDear) {
  auto texts = [](const Target& t) {
    std::set<std::string> all;
    for (int64_t n : {256, 512}) {
      Matmul p{DType::f32, 64, n, 96};
      for (const Launch& d : matmul(t, p).launches) all.insert(render(t, *d.kernel).text);
    }
    return all.size();
  };
  Target cpu{&Language::opencl_c()};
  cpu.cpu_like = true;
  EXPECT_EQ(texts(cpu), 2u);  // the packed operand's and the product's
  EXPECT_EQ(texts({&Language::glsl()}), 2 * matmul({&Language::glsl()}, {DType::f32, 64, 256, 96}).launches.size());
}

TEST(KernelText, IndicesGrowWithTheTensor) {
  Kernel k = portable("fill", {{"T", Element::f32}});
  k.set("TOTAL", 5);
  k.set("VALUE", "0.0f");
  k.set("GROUP", "IDX(GRP(0))");
  k.elements = uint64_t{1} << 33;
  EXPECT_NE(render({}, k).text.find("typedef long idx;"), std::string::npos);
  Error e = test::error_from([&] { dispatch({&Language::glsl()}, k, 1, {0}); });
  EXPECT_EQ(e.code, Code::declined);
  EXPECT_NE(std::string(e.what()).find("more than GLSL can index"), std::string::npos) << e.what();
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

TEST(Products, WithTheSumOfAnOperandTakeNeitherBiasNorBatch) {
  Target gpu;
  gpu.language = &Language::cuda_c();
  gpu.local_bytes = 49152;
  for (bool tensor_cores : {false, true}) {
    gpu.tensor_cores = tensor_cores;
    Matmul p{DType::bf16, 64, 64, 64};
    p.sum_a = true;
    EXPECT_EQ(matmul(gpu, p).launches[0].name, tensor_cores ? "matmul_mma" : "matmul_tile");
    p.bias = true;
    EXPECT_EQ(test::error_from([&] { matmul(gpu, p); }).code, Code::declined);
    p.bias = false;
    p.batch = {2}, p.a_batch = p.b_batch = {4096};
    EXPECT_EQ(test::error_from([&] { matmul(gpu, p); }).code, Code::declined);
  }
}

}  // namespace
}  // namespace tutti::codegen
