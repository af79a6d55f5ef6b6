// Kernels: compile errors, the binary cache, what is checked before a launch.
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

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

TEST_F(OpenClTest, takes_a_cached_binary) {
  for (const Found& f : usable_devices()) {
    SCOPED_TRACE(f.info.name);
    std::vector<std::byte> cache;
    {
      Driver first(f, sdk::Host());
      first.build(map_kernel("x[i] + 1u"), cache);
    }
    if (cache.empty()) continue;  // this driver keeps its own cache
    Driver second(f, sdk::Host());
    std::vector<std::byte> before = cache;
    // The text is not looked at where the binary serves: this would not compile.
    expect_increments(second, second.build(map_kernel("x[i] + not_declared"), cache));
    EXPECT_EQ(cache, before);
  }
}

TEST_F(OpenClTest, rebuilds_what_the_cache_damaged) {
  on_each([](Driver& d) {
    std::vector<std::byte> good;
    d.build(map_kernel("x[i] + 1u"), good);
    std::vector<std::vector<std::byte>> damaged = {{std::byte{1}}, std::vector<std::byte>(1000, std::byte{0x5A})};
    if (!good.empty()) {
      damaged.push_back(good);
      damaged.back()[good.size() / 2] ^= std::byte{0x40};
      damaged.push_back(std::vector<std::byte>(good.begin(), good.begin() + static_cast<long>(good.size() / 2)));
    }
    for (auto& cache : damaged) {
      expect_increments(d, d.build(map_kernel("x[i] + 1u"), cache));
      EXPECT_EQ(cache.empty(), good.empty());
      EXPECT_TRUE(cache.empty() || cache.size() > good.size() / 2);
    }
  });
}

TEST_F(OpenClTest, exact_kernels_do_not_contract) {
  on_each([](Driver& d) {
    sdk::KernelSource s;
    s.text = "__kernel void kernel_main(__global const float* x, __global float* y) { y[0] = x[0] * x[1] + x[2]; }\n";
    s.buffers = 2;
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
    wrong.buffers = 3;
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
