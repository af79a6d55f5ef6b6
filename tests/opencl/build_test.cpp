// Kernels: compile errors, the binary cache, what is checked before a launch.
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "core/os/environment.h"
#include "kernels/codegen/kernel.h"
#include "kernels/codegen/portable.h"
#include "tests/opencl/fixture.h"

namespace tutti::opencl {
namespace {

/// y = x + 1 with that kernel gives what it should.
void expect_increments(Driver& d, sdk::KernelId kernel) {
  auto x = upload(d, counting(16)), y = upload(d, std::vector<uint32_t>(16, 0));
  sdk::Launch launch{kernel, {{x, 0, 64}, {y, 0, 64}}, {2, 1, 1}, "increment"};
  auto s = d.record(std::span(&launch, 1), nullptr);
  d.wait(d.submit(s), forever);
  EXPECT_EQ(fetch<uint32_t>(d, y, 16), counting(16, 1));
  d.forget(s);
  d.release(x);
  d.release(y);
}

TEST_F(OpenClTest, a_kernel_that_does_not_compile_is_left_in_a_file) {
  on_each([](Driver& d) {
    std::vector<std::byte> cache;
    Error e = error_from([&] { d.build(map_kernel("x[i] + not_declared"), cache); });
    EXPECT_EQ(e.code, Code::compile);
    EXPECT_TRUE(cache.empty());
    std::string text = e.what();
    EXPECT_NE(text.find("not_declared"), std::string::npos) << text;
    std::smatch match;
    ASSERT_TRUE(std::regex_search(text, match, std::regex("is in ([^)]+)"))) << text;
    std::filesystem::path file = match[1].str();
    std::stringstream kept;
    kept << std::ifstream(file).rdbuf();
    EXPECT_NE(kept.str().find("    4    y[i] = x[i] + not_declared;"), std::string::npos) << kept.str();
    std::filesystem::remove(file);
    expect_increments(d, build(d, map_kernel("x[i] + 1u")));  // the driver goes on
  });
}

/// A text with macros, functions and a type of its own, whose names others have too.
sdk::KernelSource crowded(uint32_t number) {
  sdk::KernelSource s;
  s.text = "#define FN static inline\n#define ADD " + std::to_string(number) + "u\n#define X(i) x[i]\ntypedef " +
           (number % 2 ? "int" : "long") +
           " idx;\n"
           "FN uint more_(uint a) { return a + ADD; }\n"
           "kernel void kernel_main(global const uint* x, global uint* y) {\n"
           "  idx i = get_global_id(0);\n  y[i] = more_(X(i));\n}\n";
  s.written.resize(2, true);
  s.local = {8, 1, 1};
  return s;
}

TEST_F(OpenClTest, builds_many_kernels_together) {
  on_each([](Driver& d) {
    std::vector<sdk::KernelSource> sources;
    for (uint32_t k = 0; k < 20; ++k) sources.push_back(crowded(k));
    sources[3].exact = true;  // needs a program of its own
    std::vector<std::vector<std::byte>> caches(sources.size());
    std::vector<sdk::KernelId> ids = d.build_all(sources, caches);
    ASSERT_EQ(ids.size(), sources.size());
    auto x = upload(d, counting(16)), y = upload(d, std::vector<uint32_t>(16, 0));
    for (uint32_t k : {0u, 3u, 7u, 19u}) {
      sdk::Launch launch{ids[k], {{x, 0, 64}, {y, 0, 64}}, {2, 1, 1}, "crowded"};
      d.wait(d.submit(d.record(std::span(&launch, 1), nullptr)), forever);
      EXPECT_EQ(fetch<uint32_t>(d, y, 16), counting(16, k)) << k;
    }
  });
}

TEST_F(OpenClTest, names_the_one_of_many_that_does_not_compile) {
  for (const Found& f : usable_devices()) {
    SCOPED_TRACE(f.info.name);
    MapHost host;
    Driver d(f, host.host());
    std::vector<sdk::KernelSource> sources = {crowded(0), crowded(1), map_kernel("x[i] + not_declared"), crowded(2)};
    std::vector<std::vector<std::byte>> caches(sources.size());
    try {
      d.build_all(sources, caches);
      FAIL();
    } catch (const sdk::BuildError& e) {
      EXPECT_EQ(e.source, 2u);
      EXPECT_NE(std::string(e.what()).find("not_declared"), std::string::npos);
    }
    // Names that nothing keeps apart: each still builds.
    std::vector<sdk::KernelSource> clash(2, map_kernel("helper(x[i])"));
    clash[0].text = "uint helper(uint a) { return a + 1u; }\n" + clash[0].text;
    clash[1].text = "uint helper(uint a) { return a + 2u; }\n" + clash[1].text;
    caches.assign(2, {});
    host.lines.clear();
    expect_increments(d, d.build_all(clash, caches)[0]);
    ASSERT_EQ(host.lines.size(), 1u);
    EXPECT_NE(host.lines[0].find("one by one"), std::string::npos);
  }
}

TEST_F(OpenClTest, rendered_kernels_get_along_in_one_program) {
  for (const Found& f : usable_devices()) {
    SCOPED_TRACE(f.info.name);
    MapHost host;
    Driver d(f, host.host());
    TensorType wide{DType::f32, {64, 96}}, half{DType::bf16, {64, 96}};
    std::vector<codegen::LaunchList> works;
    for (DType t : {DType::f32, DType::f16, DType::bf16})
      for (int64_t m : {3, 64}) works.push_back(codegen::matmul(d.traits(), {.dtype = t, .m = m, .n = 96, .k = 64}));
    for (const TensorType& t : {wide, half})
      for (int64_t axis : {0, 1}) works.push_back(codegen::reduce(d.traits(), ReduceOp::sum, t, {axis}));
    for (int64_t axis : {0, 1}) works.push_back(codegen::argmax(d.traits(), wide, {axis}));
    works.push_back(codegen::copy(d.traits(), codegen::transpose_copy(half, {1, 0})));
    works.push_back(codegen::scatter_add(d.traits(), DType::f16, 1, 40, 24, 50));
    works.push_back(codegen::random_bits(d.traits(), 1000, 3));
    std::vector<sdk::KernelSource> sources;
    for (const codegen::LaunchList& work : works)
      for (const codegen::Launch& p : work.launches) sources.push_back(codegen::render(d.traits(), *p.kernel));
    ASSERT_GT(sources.size(), 14u);
    std::vector<std::vector<std::byte>> caches(sources.size());
    d.build_all(sources, caches);
    for (const std::string& line : host.lines) EXPECT_EQ(line.find("one by one"), std::string::npos) << line;
  }
}

/// Makes every driver hand out binaries, the one that keeps a cache of its own too.
class OpenClCacheTest : public OpenClTest {
 protected:
  void SetUp() override {
    os::set_variable("POCL_KERNEL_CACHE", "0");
    OpenClTest::SetUp();
  }
  void TearDown() override { os::unset_variable("POCL_KERNEL_CACHE"); }
};

TEST_F(OpenClCacheTest, takes_a_cached_binary) {
  for (const Found& f : usable_devices()) {
    SCOPED_TRACE(f.info.name);
    MapHost host;
    std::vector<sdk::KernelSource> sources = {map_kernel("x[i] + 1u"), crowded(1), map_kernel("x[i] + 2u")};
    std::vector<std::vector<std::byte>> caches(3);
    {
      Driver first(f, host.host());
      first.build_all(sources, caches);
    }
    EXPECT_EQ(host.blobs.size(), 1u) << "one program";
    Driver second(f, host.host());
    std::vector<std::vector<std::byte>> before = caches;
    // The text is not looked at where the binary serves: this would not compile.
    sources[0] = map_kernel("x[i] + not_declared");
    std::vector<sdk::KernelId> ids = second.build_all(sources, caches);
    expect_increments(second, ids[0]);
    expect_increments(second, ids[1]);
    EXPECT_EQ(caches, before);
  }
}

TEST_F(OpenClCacheTest, rebuilds_what_the_cache_damaged) {
  for (const Found& f : usable_devices()) {
    SCOPED_TRACE(f.info.name);
    MapHost host;
    std::vector<std::byte> good;
    Driver(f, host.host()).build(map_kernel("x[i] + 1u"), good);
    ASSERT_FALSE(good.empty());
    ASSERT_EQ(host.blobs.size(), 1u);
    std::vector<std::vector<std::byte>> damaged(4, good);
    damaged[0] = {std::byte{1}};
    damaged[1].assign(1000, std::byte{0x5A});
    damaged[2][good.size() / 2] ^= std::byte{0x40};
    damaged[3].resize(good.size() / 2);
    for (auto& entry : damaged) {
      Driver d(f, host.host());
      expect_increments(d, d.build(map_kernel("x[i] + 1u"), entry));
      EXPECT_EQ(entry, good);
    }
    const std::vector<std::byte> program = host.blobs.begin()->second;
    for (size_t size : {size_t{0}, size_t{5}, program.size() / 2, program.size()}) {
      auto& blob = host.blobs.begin()->second;
      blob = program;
      blob.resize(size);
      if (size == program.size()) blob[size / 2] ^= std::byte{0x40};
      Driver d(f, host.host());
      std::vector<std::byte> entry = good;
      expect_increments(d, d.build(map_kernel("x[i] + 1u"), entry));
      EXPECT_EQ(entry, good);
      EXPECT_GT(host.blobs.begin()->second.size(), 5u) << "stored again";
    }
  }
}

TEST_F(OpenClTest, exact_kernels_do_not_contract) {
  on_each([](Driver& d) {
    sdk::KernelSource s;
    s.text = "__kernel void kernel_main(__global const float* x, __global float* y) { y[0] = x[0] * x[1] + x[2]; }\n";
    s.written.resize(2, true);
    s.exact = true;
    auto k = build(d, s);
    // (1 + e)^2 - 1 with e = 2^-12 + 2^-23: the product's rounding shows in the difference.
    float a = 1.0f + 0x1p-12f + 0x1p-23f;
    volatile float product = a * a;
    auto x = upload(d, std::vector<float>{a, a, -1.0f}), y = d.allocate(4, "y");
    sdk::Launch launch{k, {{x, 0, 12}, {y, 0, 4}}, {1, 1, 1}, "multiply and add"};
    d.wait(d.submit(d.record(std::span(&launch, 1), nullptr)), forever);
    EXPECT_EQ(fetch<float>(d, y, 1)[0], product - 1.0f);
  });
}

TEST_F(OpenClTest, checks_what_a_launch_gives) {
  on_each([](Driver& d) {
    auto wrong = map_kernel("x[i]");
    wrong.written.resize(3, true);
    EXPECT_EQ(error_from([&] { build(d, wrong); }).code, Code::compile);
    auto absent = map_kernel("x[i]");
    absent.entry = "no_such_kernel";
    EXPECT_EQ(error_from([&] { build(d, absent); }).code, Code::compile);
    auto k = build(d, map_kernel("x[i]"));
    auto m = d.allocate(64, "m");
    sdk::Launch few{k, {{m, 0, 64}}, {1, 1, 1}, "few"};
    EXPECT_NE(std::string(error_from([&] { d.record(std::span(&few, 1), nullptr); }).what()).find("few"),
              std::string::npos);
    sdk::Launch unknown{k + 100, {{m, 0, 64}, {m, 0, 64}}, {1, 1, 1}, "unknown"};
    EXPECT_EQ(error_from([&] { d.record(std::span(&unknown, 1), nullptr); }).code, Code::invalid);
  });
}

}  // namespace
}  // namespace tutti::opencl
