// The Vulkan driver alone, on the first usable device (lavapipe where there is no GPU), through sdk/driver.h.
#include "backends/vulkan/driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <regex>

#include "tests/support/require.h"

namespace tutti::vulkan {
namespace {

constexpr uint64_t forever = ~0ull;

const char* head = R"(#version 450
layout(local_size_x = 64) in;
)";

/// y[i] = 2 x[i] + 1 for floats; `n` is text of the kernel.
sdk::KernelSource twice_plus_one(uint32_t n) {
  sdk::KernelSource s;
  s.text = fmt::format(R"({}layout(std430, set = 0, binding = 0) readonly buffer A {{ float x[]; }};
layout(std430, set = 0, binding = 1) writeonly buffer B {{ float y[]; }};
void main() {{
  uint i = gl_GlobalInvocationID.x;
  if (i < {}u) y[i] = 2.0 * x[i] + 1.0;
}}
)",
                       head, n);
  s.local = {64, 1, 1};
  s.written = {false, true};
  return s;
}

/// x[i] += 1, in place.
sdk::KernelSource increment(uint32_t n) {
  sdk::KernelSource s;
  s.text = fmt::format(R"({}layout(std430, set = 0, binding = 0) buffer A {{ float x[]; }};
void main() {{
  uint i = gl_GlobalInvocationID.x;
  if (i < {}u) x[i] += 1.0;
}}
)",
                       head, n);
  s.local = {64, 1, 1};
  s.written = {true};
  return s;
}

/// y[i] = 3 x[i] for vectors of four floats that are read through a texel buffer.
sdk::KernelSource thrice_from_texels(uint32_t n) {
  sdk::KernelSource s;
  s.text = fmt::format(R"({}layout(set = 0, binding = 0) uniform samplerBuffer x;
layout(std430, set = 0, binding = 1) writeonly buffer B {{ vec4 y[]; }};
void main() {{
  int i = int(gl_GlobalInvocationID.x);
  if (i < {}) y[i] = 3.0 * texelFetch(x, i);
}}
)",
                       head, n);
  s.local = {64, 1, 1};
  s.written = {false, true};
  s.texels = {true, false};
  return s;
}

/// Takes a while, so that waiting can time out. (lavapipe ends all loops of a work-item after 65535 rounds.)
sdk::KernelSource slow(uint32_t rounds) {
  sdk::KernelSource s;
  s.text = fmt::format(R"({}layout(std430, set = 0, binding = 0) buffer A {{ uint x[]; }};
void main() {{
  uint v = x[gl_GlobalInvocationID.x];
  for (uint i = 0u; i < {}u; ++i) v = v * 1664525u + 1013904223u;
  x[gl_GlobalInvocationID.x] = v;
}}
)",
                       head, rounds);
  s.local = {64, 1, 1};
  s.written = {true};
  return s;
}

/// Whether the vulkan-validation preset runs: then nothing may be skipped.
bool validation_wanted() {
  const char* wanted = std::getenv("TUTTI_VULKAN_VALIDATION");
  return wanted && *wanted && std::string(wanted) != "0";
}

class VulkanDriverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    static auto& kept = *new std::shared_ptr<Instance>;  // as a plugin does: drivers are not unloaded
    try {
      if (!kept) kept = Instance::make(sdk::Host());
      instance = kept;
    } catch (const Error& e) {
      if (validation_wanted()) FAIL() << e.what();
      return test::skip_without("vulkan", std::string(e.what()) + "; " + e.remedy);
    }
    for (const PhysicalDevice& d : instance->devices())
      if (d.listed.unusable.empty()) physical = &d;
    if (!physical) return test::skip_without("vulkan", "no usable Vulkan device");
    driver = std::make_unique<VulkanDriver>(instance, *physical);
  }

  void TearDown() override {
    driver.reset();
    if (instance) {
      EXPECT_NO_THROW(instance->throw_validation());
    }
  }

  sdk::KernelId build(const sdk::KernelSource& source) {
    std::vector<std::byte> cache;
    return driver->build(source, cache);
  }
  static sdk::Launch launch(sdk::KernelId kernel, std::vector<sdk::Range> buffers, uint32_t groups = 1) {
    sdk::Launch l;
    l.kernel = kernel;
    l.buffers = std::move(buffers);
    l.groups = {groups, 1, 1};
    l.name = "test";
    return l;
  }
  static sdk::Launch copy(sdk::Range from, sdk::Range to) {
    sdk::Launch l = launch(0, {from, to});
    l.copy = true;
    return l;
  }
  std::vector<float> floats(sdk::MemoryId memory, uint64_t offset, size_t count) {
    std::vector<float> out(count);
    driver->read({memory, offset, count * 4}, out.data());
    return out;
  }
  template <class T>
  void put(sdk::MemoryId memory, uint64_t offset, const std::vector<T>& data) {
    driver->write({memory, offset, data.size() * sizeof(T)}, data.data());
  }
  /// What fails with Error, or "".
  template <class F>
  std::pair<Code, std::string> failure(F&& f) {
    try {
      f();
    } catch (const Error& e) {
      return {e.code, e.what()};
    }
    return {Code::ok, ""};
  }

  std::shared_ptr<Instance> instance;
  const PhysicalDevice* physical = nullptr;
  std::unique_ptr<VulkanDriver> driver;
};

TEST_F(VulkanDriverTest, TellsWhatTheDeviceIs) {
  const sdk::Traits& t = driver->traits();
  EXPECT_EQ(t.language, &sdk::Language::glsl());
  EXPECT_GE(t.max_local, 128u);
  EXPECT_GE(t.subgroup, 1u);
  EXPECT_GE(t.max_buffer_bytes, 1u << 27);
  EXPECT_GE(t.max_allocation_bytes, 1u << 30);
  EXPECT_EQ(t.alignment & (t.alignment - 1), 0u);
  EXPECT_NE(t.identity.find(physical->listed.name), std::string::npos);
  EXPECT_NE(t.identity.find("glslang"), std::string::npos);
  EXPECT_FALSE(physical->listed.driver.empty());
  EXPECT_GT(physical->listed.memory_total, 0u);
  EXPECT_EQ(t.cpu_like, physical->listed.kind == TUTTI_SOFTWARE);
}

TEST_F(VulkanDriverTest, MovesBytes) {
  for (bool staged : {false, true}) {
    SCOPED_TRACE(staged);
    if (staged) driver->avoid_mapping();
    sdk::MemoryId m = driver->allocate(1000, "bytes");
    std::vector<uint8_t> data(1000);
    std::iota(data.begin(), data.end(), 7);
    put(m, 0, data);
    std::vector<uint8_t> back(1000);
    driver->read({m, 0, 1000}, back.data());
    EXPECT_EQ(back, data);
    for (auto [from, to] : {std::pair{3, 5}, {4, 8}, {5, 6}, {2, 31}, {8, 997}}) {  // any bytes
      put(m, 0, data);
      driver->fill_zero({m, static_cast<uint64_t>(from), static_cast<uint64_t>(to - from)});
      std::vector<uint8_t> want = data;
      std::fill(want.begin() + from, want.begin() + to, 0);
      driver->read({m, 0, 1000}, back.data());
      EXPECT_EQ(back, want) << from << " to " << to;
    }
    put(m, 0, data);
    back.assign(3, 0);
    driver->read({m, 17, 3}, back.data());
    EXPECT_EQ(back, (std::vector<uint8_t>{data[17], data[18], data[19]}));
    EXPECT_EQ(failure([&] { driver->read({m, 990, 11}, back.data()); }).first, Code::invalid);
    driver->release(m);
    EXPECT_EQ(failure([&] { driver->read({m, 0, 1}, back.data()); }).first, Code::invalid);
  }
}

TEST_F(VulkanDriverTest, MovesMoreThanOneStagingBuffer) {
  driver->avoid_mapping();
  constexpr size_t n = (40 << 20) / 4 + 3;
  sdk::MemoryId m = driver->allocate(n * 4, "much");
  std::vector<uint32_t> data(n), back(n);
  for (size_t i = 0; i < n; ++i) data[i] = static_cast<uint32_t>(i * 2654435761u);
  put(m, 0, data);
  driver->read({m, 0, n * 4}, back.data());
  EXPECT_TRUE(back == data);
}

TEST_F(VulkanDriverTest, RunsAKernelOverRangesWithOffsets) {
  uint64_t step = std::max<uint64_t>(512, driver->traits().alignment);
  sdk::MemoryId m = driver->allocate(4 * step, "ranges");
  driver->fill_zero({m, 0, 4 * step});
  std::vector<float> x(100);
  std::iota(x.begin(), x.end(), 0.f);
  put(m, step, x);
  sdk::KernelId k = build(twice_plus_one(100));
  std::vector<sdk::Launch> launches = {launch(k, {{m, step, 400}, {m, 3 * step, 400}}, 2)};
  sdk::SequenceId s = driver->record(launches, nullptr);
  EXPECT_EQ(driver->submit(s), 1u);
  EXPECT_EQ(driver->submit(s), 2u);
  driver->wait(2, forever);
  std::vector<float> y = floats(m, 3 * step, 101);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(y[i], 2.f * i + 1);
  EXPECT_EQ(y[100], 0.f);  // nothing past the end
  EXPECT_EQ(floats(m, 2 * step, 1)[0], 0.f);
  EXPECT_EQ(floats(m, step, 100), x);
  driver->forget(s);
  EXPECT_EQ(failure([&] { driver->submit(s); }).first, Code::invalid);
}

TEST_F(VulkanDriverTest, EachLaunchSeesTheWritesBefore) {
  constexpr uint32_t n = 4096;
  sdk::MemoryId a = driver->allocate(n * 4, "a"), b = driver->allocate(n * 4, "b");
  sdk::KernelId add = build(increment(n)), twice = build(twice_plus_one(n));
  sdk::Range whole_a{a, 0, n * 4}, whole_b{b, 0, n * 4};
  // a = 0; a += 1 (20 times); b = 2a + 1; a = b; a += 1
  std::vector<sdk::Launch> launches(20, launch(add, {whole_a}, n / 64));
  launches.push_back(launch(twice, {whole_a, whole_b}, n / 64));
  launches.push_back(copy(whole_b, whole_a));
  launches.push_back(launch(add, {whole_a}, n / 64));
  sdk::SequenceId s = driver->record(launches, nullptr);
  EXPECT_EQ(driver->barriers(s), 22u);
  driver->fill_zero(whole_a);
  float want = 0;
  for (int round = 0; round < 3; ++round) {  // without waiting: the second run starts from what the first left
    driver->submit(s);
    want = 2 * (want + 20) + 2;
  }
  std::vector<float> got = floats(a, 0, n);  // waits by itself
  EXPECT_EQ(got, std::vector<float>(n, want));
}

TEST_F(VulkanDriverTest, TimestampsTellLaunchesApart) {
  if (physical->timestamp_bits == 0) GTEST_SKIP() << "the device's queue has no clock";
  constexpr uint32_t n = 4096;
  sdk::MemoryId a = driver->allocate(n * 4, "a"), b = driver->allocate(n * 4, "b");
  sdk::Range whole_a{a, 0, n * 4}, whole_b{b, 0, n * 4};
  auto* host = static_cast<float*>(driver->allocate_host(n * 4, "feed"));
  std::fill_n(host, n, 1.f);
  sdk::Upload upload{host, whole_a};
  sdk::KernelId add = build(increment(n)), idle = build(slow(60000));
  std::vector<sdk::Launch> launches = {launch(add, {whole_a}, n / 64), launch(idle, {whole_b}, n / 64),
                                       copy(whole_a, whole_b), launch(add, {whole_b}, n / 64)};
  std::optional<sdk::SequenceId> s = driver->record_timed(launches, &upload);
  ASSERT_TRUE(s);
  for (int round = 0; round < 2; ++round) driver->wait(driver->submit(*s), forever);
  EXPECT_EQ(floats(b, 0, n), std::vector<float>(n, 3));
  std::vector<sdk::Interval> times = driver->times(*s);
  ASSERT_EQ(times.size(), 5u) << "the upload, then each launch";
  auto took = [&](size_t k) { return times[k].end - times[k].begin; };
  for (size_t k = 1; k < times.size(); ++k) EXPECT_GE(times[k].begin, times[k - 1].end);
  EXPECT_GT(took(2), took(3)) << "60000 rounds per element against a copy of 16 KiB";
  driver->forget(*s);
  driver->release_host(host);
}

TEST_F(VulkanDriverTest, IndependentLaunchesNeedNoBarrier) {
  constexpr uint32_t n = 1024, bytes = n * 4;
  sdk::MemoryId m = driver->allocate(8 * bytes, "arena");
  driver->fill_zero({m, 0, 8 * bytes});
  sdk::KernelId add = build(increment(n)), twice = build(twice_plus_one(n));
  auto part = [&](uint64_t i) { return sdk::Range{m, i * bytes, bytes}; };
  std::vector<sdk::Launch> launches;
  for (uint64_t i = 0; i < 4; ++i)
    launches.push_back(launch(twice, {part(0), part(i + 1)}, n / 64));  // one input, four results
  sdk::SequenceId independent = driver->record(launches, nullptr);
  EXPECT_EQ(driver->barriers(independent), 0u);
  launches.push_back(launch(add, {part(0)}, n / 64));  // writes what the others read
  launches.push_back(launch(add, {part(5)}, n / 64));
  launches.push_back(launch(add, {part(5)}, n / 64));  // writes what was written
  sdk::SequenceId dependent = driver->record(launches, nullptr);
  EXPECT_EQ(driver->barriers(dependent), 2u);
  driver->submit(independent);
  driver->submit(dependent);
  EXPECT_EQ(floats(m, 4 * bytes, 1)[0], 1.f);
  EXPECT_EQ(floats(m, 0, 1)[0], 1.f);
  EXPECT_EQ(floats(m, 5 * bytes, 1)[0], 2.f);
}

TEST_F(VulkanDriverTest, UploadsComeFirst) {
  constexpr uint32_t n = 256;
  sdk::MemoryId in = driver->allocate(n * 4 + 256, "in"), out = driver->allocate(n * 4, "out");
  sdk::KernelId k = build(twice_plus_one(n));
  auto* host = static_cast<float*>(driver->allocate_host(2 * n * 4, "feeds"));
  ASSERT_EQ(reinterpret_cast<uintptr_t>(host) % 64, 0u);
  sdk::Upload upload{host + n, {in, 256, n * 4}};  // from the middle of the block
  std::vector<sdk::Launch> launches = {launch(k, {{in, 256, n * 4}, {out, 0, n * 4}}, n / 64)};
  sdk::SequenceId s = driver->record(launches, &upload);
  EXPECT_EQ(driver->barriers(s), 1u);
  for (float start : {1.f, 100.f, -5.f}) {  // the host memory is read when the sequence runs
    for (uint32_t i = 0; i < n; ++i) host[n + i] = start + static_cast<float>(i);
    uint64_t ticket = driver->submit(s);
    driver->wait(ticket, forever);
    std::vector<float> y = floats(out, 0, n);
    for (uint32_t i = 0; i < n; ++i) ASSERT_EQ(y[i], 2 * (start + static_cast<float>(i)) + 1);
  }
  driver->forget(s);
  driver->release_host(host);
  EXPECT_EQ(failure([&] { driver->record(launches, &upload); }).first, Code::invalid);
}

TEST_F(VulkanDriverTest, WaitTimesOutAndGoesOn) {
  sdk::MemoryId m = driver->allocate(256, "spin");
  driver->fill_zero({m, 0, 256});
  std::vector<sdk::Launch> launches(200, launch(build(slow(60'000)), {{m, 0, 256}}));
  sdk::SequenceId s = driver->record(launches, nullptr);
  driver->wait(0, 0);  // nothing was submitted: nothing to wait for
  uint64_t ticket = driver->submit(s);
  auto [code, text] = failure([&] { driver->wait(ticket, 1000); });
  EXPECT_EQ(code, Code::timeout);
  EXPECT_NE(text.find("step 1"), std::string::npos) << text;
  driver->wait(ticket, forever);
  driver->wait(ticket, 0);  // done: no time is needed
  EXPECT_EQ(failure([&] { driver->wait(ticket + 1, 0); }).first, Code::invalid);
  uint32_t want = 0, got = 0;
  for (uint32_t i = 0; i < 200 * 60'000u; ++i) want = want * 1664525u + 1013904223u;
  driver->read({m, 4, 4}, &got);
  EXPECT_EQ(got, want);
}

TEST_F(VulkanDriverTest, CompileErrorsNameAFileWithTheSource) {
  sdk::KernelSource bad = increment(10);
  bad.text.replace(bad.text.find("+= 1.0"), 6, "+= oops");
  std::vector<std::byte> cache;
  auto [code, text] = failure([&] { driver->build(bad, cache); });
  EXPECT_EQ(code, Code::compile);
  EXPECT_TRUE(cache.empty());
  EXPECT_NE(text.find("'oops' : undeclared identifier"), std::string::npos) << text;
  std::smatch found;
  ASSERT_TRUE(std::regex_search(text, found, std::regex("in (\\S+\\.glsl)"))) << text;
  std::ifstream file(found[1].str());
  std::string all((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(all.find("   6    if (i < 10u) x[i] += oops;"), std::string::npos) << all;
  file.close();  // Windows removes no open file
  std::filesystem::remove(found[1].str());

  sdk::KernelSource large = increment(10);
  large.local = {1 << 20, 1, 1};
  std::tie(code, text) = failure([&] { driver->build(large, cache); });
  EXPECT_EQ(code, Code::compile);
  EXPECT_NE(text.find("1048576 work-items"), std::string::npos) << text;
  if (std::regex_search(text, found, std::regex("in (\\S+\\.glsl)"))) std::filesystem::remove(found[1].str());
}

TEST_F(VulkanDriverTest, BuildsManyKernelsTogether) {
  std::vector<sdk::KernelSource> sources;
  for (int k = 0; k < 20; ++k) {
    sources.push_back(increment(64));
    sources.back().text.replace(sources.back().text.find("+= 1.0"), 6, "+= " + std::to_string(k) + ".0");
  }
  std::vector<std::vector<std::byte>> caches(sources.size());
  std::vector<sdk::KernelId> ids = driver->build_all(sources, caches);
  ASSERT_EQ(ids.size(), sources.size());
  sdk::MemoryId m = driver->allocate(256, "x");
  for (size_t k = 0; k < ids.size(); ++k) {
    EXPECT_FALSE(caches[k].empty()) << k;
    driver->fill_zero({m, 0, 256});
    std::vector<sdk::Launch> launches = {launch(ids[k], {{m, 0, 256}})};
    driver->submit(driver->record(launches, nullptr));
    EXPECT_EQ(floats(m, 0, 64), std::vector<float>(64, static_cast<float>(k)));
  }
  sources[7].text.replace(sources[7].text.find("+= 7.0"), 6, "+= oops");
  caches.assign(sources.size(), {});
  try {
    driver->build_all(sources, caches);
    FAIL();
  } catch (const sdk::BuildError& e) {
    EXPECT_EQ(e.source, 7u);
    EXPECT_EQ(e.code, Code::compile);
    std::string text = e.what();
    std::smatch found;
    if (std::regex_search(text, found, std::regex("in (\\S+\\.glsl)"))) std::filesystem::remove(found[1].str());
  }
  EXPECT_NO_THROW(build(increment(64)));
}

TEST_F(VulkanDriverTest, TakesKernelsFromTheCacheAndRefusesCorruptOnes) {
  sdk::KernelSource source = increment(64);
  std::vector<std::byte> entry;
  driver->build(source, entry);
  ASSERT_GT(entry.size(), 100u);
  sdk::MemoryId m = driver->allocate(256, "x");
  auto works = [&](std::vector<std::byte>& cache, const sdk::KernelSource& text) {
    driver->fill_zero({m, 0, 256});
    std::vector<sdk::Launch> launches = {launch(driver->build(text, cache), {{m, 0, 256}})};
    driver->submit(driver->record(launches, nullptr));
    return floats(m, 0, 64) == std::vector<float>(64, 1.f);
  };
  std::vector<std::byte> cache = entry;
  EXPECT_TRUE(works(cache, source));
  EXPECT_EQ(cache, entry);
  // The binary is really taken: an entry that claims to be for this text, yet adds 2 (bytes 8 to 15 name the text).
  sdk::KernelSource two = source;
  two.text.replace(two.text.find("+= 1.0"), 6, "+= 2.0");
  std::vector<std::byte> liar;
  driver->build(two, liar);
  std::copy(entry.begin() + 8, entry.begin() + 16, liar.begin() + 8);
  EXPECT_FALSE(works(liar, source));
  for (size_t cut : {size_t{0}, size_t{10}, size_t{40}, entry.size() / 2, entry.size() - 1}) {
    cache.assign(entry.begin(), entry.begin() + static_cast<ptrdiff_t>(cut));
    EXPECT_TRUE(works(cache, source)) << cut;
    EXPECT_EQ(cache.size(), entry.size()) << cut;
  }
  for (size_t at = 0; at < entry.size(); at += 97) {
    cache = entry;
    cache[at] ^= std::byte{0x10};
    EXPECT_TRUE(works(cache, source)) << at;
  }
  cache = std::vector<std::byte>(5000, std::byte{0xff});
  EXPECT_TRUE(works(cache, source));
  sdk::KernelSource other = source;  // an entry of another text does not fit
  other.text += "// another\n";
  cache = entry;
  EXPECT_TRUE(works(cache, other));
  EXPECT_NE(cache, entry);
}

TEST_F(VulkanDriverTest, SaysWhatDoesNotFitInMemory) {
  auto [code, text] = failure([&] { driver->allocate(1ull << 46, "the arena"); });
  EXPECT_EQ(code, Code::no_memory);
  EXPECT_NE(text.find("the arena needs 67108864.0 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find(physical->listed.name), std::string::npos) << text;
  EXPECT_EQ(failure([&] { driver->allocate(0, "nothing"); }).first, Code::invalid);
  sdk::MemoryId m = driver->allocate(64, "small");  // the driver goes on
  driver->fill_zero({m, 0, 64});
}

TEST_F(VulkanDriverTest, RefusesLaunchesThatDoNotFit) {
  sdk::MemoryId m = driver->allocate(1024, "m");
  sdk::KernelId add = build(increment(64));
  auto refused = [&](const sdk::Launch& l) { return failure([&] { driver->record({&l, 1}, nullptr); }); };
  EXPECT_EQ(refused(launch(add, {})).first, Code::invalid);
  EXPECT_EQ(refused(launch(add + 1, {{m, 0, 256}})).first, Code::invalid);
  EXPECT_EQ(refused(launch(add, {{m + 1, 0, 256}})).first, Code::invalid);
  EXPECT_EQ(refused(launch(add, {{m, 1024 - driver->traits().alignment, 256}})).first, Code::invalid);
  EXPECT_EQ(refused(launch(add, {{m, 4, 256}})).first, Code::invalid);
  EXPECT_EQ(refused(launch(add, {{m, 0, 256}}, 65536)).first, Code::invalid);
  EXPECT_EQ(refused(copy({m, 0, 8}, {m, 16, 4})).first, Code::invalid);
  EXPECT_NE(refused(launch(add, {{m, 4, 256}})).second.find("test: offset 4 is not a multiple of"), std::string::npos);
}

TEST_F(VulkanDriverTest, SessionsAreIndependent) {
  auto second = std::make_unique<VulkanDriver>(instance, *physical);
  sdk::MemoryId a = driver->allocate(256, "a"), b = second->allocate(256, "b");
  std::vector<float> ones(64, 1.f), twos(64, 2.f);
  driver->write({a, 0, 256}, ones.data());
  second->write({b, 0, 256}, twos.data());
  second.reset();
  EXPECT_EQ(floats(a, 0, 64), ones);
}

TEST(VulkanHazards, MeetWhereRangesOverlap) {
  Hazards h;
  std::vector<sdk::Range> a = {{1, 0, 100}}, next = {{1, 100, 100}}, inside = {{1, 99, 1}}, other = {{2, 0, 100}};
  h.add(a, {});
  EXPECT_FALSE(h.conflict(a, {}));  // two readers
  EXPECT_TRUE(h.conflict({}, inside));
  EXPECT_FALSE(h.conflict({}, next));
  EXPECT_FALSE(h.conflict({}, other));
  h.add({}, next);
  EXPECT_TRUE(h.conflict(next, {}));
  EXPECT_TRUE(h.conflict({}, next));
  h.clear();
  EXPECT_FALSE(h.conflict(a, next));
}

/// With TUTTI_VULKAN_VALIDATION set, a broken rule of Vulkan must be heard; otherwise the preset would prove nothing.
TEST_F(VulkanDriverTest, ValidationIsHeard) {
  if (!validation_wanted()) GTEST_SKIP() << "TUTTI_VULKAN_VALIDATION is not set";
  ASSERT_TRUE(instance->validating());
  // A shared array beyond the device's limit.
  sdk::KernelSource greedy = increment(64);
  greedy.text.insert(greedy.text.find("void main"), "shared float big[1 << 22];\n");
  greedy.text.insert(greedy.text.find("x[i] +="), "big[i] = x[i]; ");
  auto [code, text] = failure([&] { build(greedy); });
  EXPECT_EQ(code, Code::internal);
  EXPECT_NE(text.find("validation"), std::string::npos) << text;
}

TEST_F(VulkanDriverTest, TexelBuffersAreReadFromTheirOffset) {
  if (driver->traits().max_texels == 0) GTEST_SKIP() << "kernels for this device read no texel buffers";
  constexpr uint32_t texels = 100;
  uint64_t skipped = driver->traits().alignment;
  sdk::MemoryId x = driver->allocate(skipped + texels * 16, "x"), y = driver->allocate(texels * 16, "y");
  std::vector<float> given(texels * 4), got(texels * 4);
  std::iota(given.begin(), given.end(), 1.0f);
  driver->write({x, skipped, texels * 16}, given.data());
  sdk::KernelId kernel = build(thrice_from_texels(texels));
  sdk::Launch l = launch(kernel, {{x, skipped, texels * 16}, {y, 0, texels * 16}}, 2);
  driver->wait(driver->submit(driver->record({&l, 1}, nullptr)), forever);
  driver->read({y, 0, texels * 16}, got.data());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], 3 * given[i]) << i;
  l.buffers[0].bytes -= 4;
  EXPECT_THROW(driver->record({&l, 1}, nullptr), Error) << "a part of a texel";
}

}  // namespace
}  // namespace tutti::vulkan
