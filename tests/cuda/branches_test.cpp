// Which launches of a step may run side by side: the analysis alone, and the graph that comes of it.
#include "backends/cuda/branches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "backends/cuda/driver.h"
#include "tests/cuda/fake_cuda.h"

namespace tutti::cuda {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Launches = std::vector<std::vector<Access>>;

bool conflict(const std::vector<Access>& a, const std::vector<Access>& b) {
  for (const Access& x : a)
    for (const Access& y : b)
      if ((x.written || y.written) && x.begin < y.end && y.begin < x.end) return true;
  return false;
}

/// before[k][j]: the streams' order and the waits put launch j before k.
std::vector<std::vector<bool>> order(const std::vector<Placed>& placed) {
  std::vector<std::vector<bool>> before(placed.size(), std::vector<bool>(placed.size()));
  for (size_t k = 0; k < placed.size(); ++k) {
    std::vector<size_t> direct(placed[k].waits.begin(), placed[k].waits.end());
    for (size_t j = 0; j < k; ++j)
      if (placed[j].stream == placed[k].stream) direct.push_back(j);
    for (size_t j : direct) {
      before[k][j] = true;
      for (size_t i = 0; i < j; ++i)
        if (before[j][i]) before[k][i] = true;
    }
  }
  return before;
}

Launches random_launches(std::mt19937& random, size_t count, uint64_t bytes) {
  auto below = [&](uint64_t n) { return random() % n; };
  Launches launches(count);
  for (auto& launch : launches)
    for (uint64_t n = 1 + below(4); n > 0; --n) {
      uint64_t begin = below(bytes);
      launch.push_back({begin, begin + 1 + below(std::min<uint64_t>(bytes - begin, 1 + bytes / 8)), below(3) == 0});
    }
  return launches;
}

TEST(CudaBranches, ConflictingLaunchesAreAlwaysOrdered) {
  std::mt19937 random(7);
  size_t side_by_side = 0;
  for (int round = 0; round < 300; ++round) {
    uint64_t bytes = round % 3 == 0 ? 8 : round % 3 == 1 ? 64 : 1000;
    Launches launches = random_launches(random, 1 + random() % 40, bytes);
    uint32_t streams = 1 + static_cast<uint32_t>(random() % 5);
    std::vector<Placed> placed = place(launches, streams);
    auto before = order(placed);
    for (size_t k = 0; k < launches.size(); ++k) {
      ASSERT_LT(placed[k].stream, streams);
      for (uint32_t w : placed[k].waits) {
        ASSERT_LT(w, k);
        EXPECT_NE(placed[w].stream, placed[k].stream);
        EXPECT_TRUE(conflict(launches[w], launches[k])) << "round " << round << ": " << k << " waits for " << w;
      }
      for (size_t j = 0; j < k; ++j) {
        EXPECT_TRUE(before[k][j] || !conflict(launches[j], launches[k])) << "round " << round << ": " << j << ", " << k;
        side_by_side += !before[k][j];
      }
    }
  }
  EXPECT_GT(side_by_side, 1000u);
}

TEST(CudaBranches, OneStreamKeepsTheOrderWithoutWaits) {
  std::mt19937 random(8);
  for (const Placed& p : place(random_launches(random, 30, 64), 1)) {
    EXPECT_EQ(p.stream, 0u);
    EXPECT_THAT(p.waits, IsEmpty());
  }
}

TEST(CudaBranches, GradientsOfWeightsRunBesideThoseOfData) {
  // y = f(x) at [0, 8); dw at [8, 16) and dx at [16, 24) both read it; each is then read by what follows.
  std::vector<Placed> placed = place(Launches{{{0, 8, true}},
                                              {{0, 8, false}, {8, 16, true}},
                                              {{0, 8, false}, {16, 24, true}},
                                              {{8, 16, false}, {24, 32, true}},
                                              {{16, 24, false}, {32, 40, true}},
                                              {{24, 40, false}, {40, 48, true}}},
                                     2);
  EXPECT_EQ(placed[1].stream, placed[0].stream);
  EXPECT_NE(placed[2].stream, placed[1].stream);
  EXPECT_THAT(placed[2].waits, ElementsAre(0));
  EXPECT_EQ(placed[3].stream, placed[1].stream);
  EXPECT_EQ(placed[4].stream, placed[2].stream);
  EXPECT_THAT(placed[3].waits, IsEmpty());
  EXPECT_THAT(placed[5].waits, ElementsAre(3));
}

TEST(CudaBranches, CollectivesHaveAStreamOfTheirOwnAndKeepTheirOrder) {
  // two gradients, each summed behind what computes it
  const Launches launches{{{8, 16, true}},  {{8, 16, true}},  {{16, 24, true}},
                          {{16, 24, true}}, {{24, 32, true}}, {{8, 16, false}, {32, 40, true}}};
  for (uint32_t streams : {0u, 1u, 3u}) {
    std::vector<Placed> placed = place(launches, streams, {false, true, false, true, false, false});
    const uint32_t own = std::max(streams, 1u);
    for (size_t k : {1, 3}) EXPECT_EQ(placed[k].stream, own);
    for (size_t k : {0, 2, 4, 5}) EXPECT_LT(placed[k].stream, own);
    EXPECT_THAT(placed[1].waits, ElementsAre(0));
    EXPECT_THAT(placed[3].waits, ElementsAre(2));
    EXPECT_THAT(placed[4].waits, IsEmpty());
    EXPECT_THAT(placed[5].waits, ElementsAre(1)) << "reads a sum";
    EXPECT_FALSE(order(placed)[2][1]) << "what follows runs beside a sum";
  }
}

TEST(CudaBranches, ReadersShareAndMemoryUsedAgainDoesNot) {
  std::vector<Placed> placed =
      place(Launches{{{0, 8, false}, {8, 16, true}}, {{0, 8, false}, {16, 24, true}}, {{4, 6, true}}}, 3);
  EXPECT_NE(placed[0].stream, placed[1].stream);
  EXPECT_THAT(placed[1].waits, IsEmpty());
  EXPECT_THAT(placed[2].waits, ElementsAre(0)) << "it continues the other reader's stream";
}

// ---- the graph, whose nodes the fake runs in any order that its edges leave open

/// z = 31 z + 7 x + y, all of one word: any two launches in the wrong order show.
std::function<void()> mix(CUfunction, void** parameters) {
  uint32_t* at[3];
  for (int i = 0; i < 3; ++i) at[i] = reinterpret_cast<uint32_t*>(*static_cast<CUdeviceptr*>(parameters[i]));
  return [x = at[0], y = at[1], z = at[2]] { *z = 31 * *z + 7 * *x + *y; };
}

/// A call of a library that writes its last buffer only: z = x + 3 z.
struct Sum : Call {
  void run(CUstream stream, std::span<const CUdeviceptr> buffers) const override {
    auto* x = reinterpret_cast<uint32_t*>(buffers[0]);
    auto* z = reinterpret_cast<uint32_t*>(buffers[1]);
    (void)fake::enqueue(stream, [=] { *z = *x + 3 * *z; });
  }
  size_t inputs() const override { return 1; }
};

constexpr uint32_t words = 24;
constexpr uint64_t step = 256;  // between words

class CudaGraphs : public testing::Test {
 protected:
  fake::State& seen = fake::reset();

  void SetUp() override { seen.kernel = mix; }

  std::unique_ptr<Driver> open(const char* streams) {
    setenv("TUTTI_CUDA_STREAMS", streams, 1);
    auto libraries = start(fake::cuda(), fake::nvrtc());
    auto driver = [&]() -> std::unique_ptr<Driver> {
      try {
        return std::make_unique<Driver>(libraries, find_devices(*libraries).at(0));
      } catch (...) {
        unsetenv("TUTTI_CUDA_STREAMS");
        throw;
      }
    }();
    unsetenv("TUTTI_CUDA_STREAMS");
    return driver;
  }

  /// The memory after three runs of random kernels, copies and calls behind an upload.
  std::vector<uint32_t> run(const char* streams, uint32_t seed, std::vector<bool> written = {false, false, true}) {
    auto driver = open(streams);
    sdk::MemoryId m = driver->allocate(words * step, "m");
    std::vector<uint32_t> all(words * step / 4);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint32_t>(i * 2654435761u);
    driver->write({m, 0, words * step}, all.data());
    sdk::KernelSource source;
    source.text = "x";
    source.written = std::move(written);
    source.written.resize(3, true);
    std::vector<std::byte> cache;
    sdk::KernelId kernel = driver->build(source, cache);
    auto* host = static_cast<uint32_t*>(driver->allocate_host(4 * step, "host"));
    std::memset(host, 0, 4 * step);
    sdk::Upload upload{host, {m, 0, 4 * step}, {driver->allocate(4 * step, "upload buffer"), 0, 4 * step}};

    std::mt19937 random(seed);
    auto word = [&] { return sdk::Range{m, random() % words * step, 4}; };
    std::vector<sdk::Launch> launches;
    while (launches.size() < 40) {
      sdk::Launch l{kernel, {word(), word(), word()}, {1, 1, 1}, "mix"};
      if (random() % 4 == 0) l = {0, {word(), word()}, {1, 1, 1}, "copy", true};
      if (random() % 4 == 0) l = {0, {word(), word()}, {1, 1, 1}, "call", false, std::make_shared<Sum>()};
      if (l.copy && l.buffers[0].offset == l.buffers[1].offset) continue;
      launches.push_back(std::move(l));
    }
    sdk::SequenceId sequence = driver->record(launches, &upload);
    for (uint32_t k = 0; k < 3; ++k) {
      host[0] = k;
      driver->wait(driver->submit(sequence), ~uint64_t{0});
    }
    driver->read({m, 0, words * step}, all.data());
    driver->forget(sequence);
    driver.reset();
    EXPECT_EQ(seen.live_events, 0u);
    EXPECT_EQ(seen.live_streams, 0u);
    return all;
  }
};

TEST_F(CudaGraphs, AnyOrderThatTheEdgesLeaveOpenGivesTheSameBits) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    seen.next = nullptr;
    std::vector<uint32_t> right = run("1", seed);
    EXPECT_EQ(seen.graph_edges + 1, seen.graph_nodes) << "one stream is one chain";
    std::mt19937 random(seed);
    size_t most = 0;
    for (const char* streams : {"2", "5"}) {
      seen.next = [&](const std::vector<size_t>& ready) {
        return most = std::max(most, ready.size()), ready.size() - 1;
      };
      EXPECT_EQ(run(streams, seed), right) << "newest first, seed " << seed;
      seen.next = [&](const std::vector<size_t>& ready) { return random() % ready.size(); };
      EXPECT_EQ(run(streams, seed), right) << "any, seed " << seed;
    }
    EXPECT_GT(most, 1u) << "nothing ran side by side";
  }
}

TEST_F(CudaGraphs, TheFakeNoticesAMissingEdge) {
  size_t different = 0;
  for (uint32_t seed = 0; seed < 10; ++seed) {
    seen.next = nullptr;
    std::vector<uint32_t> right = run("1", seed);
    seen.next = [](const std::vector<size_t>& ready) { return ready.size() - 1; };
    different += run("5", seed, {false, false, false}) != right;  // the kernels lie about what they write
  }
  EXPECT_GT(different, 0u);
}

TEST_F(CudaGraphs, KernelsThatDoNotSayWhatTheyWriteAreInOrder) {
  seen.next = nullptr;
  std::vector<uint32_t> right = run("1", 3);
  seen.next = [](const std::vector<size_t>& ready) { return ready.size() - 1; };
  EXPECT_EQ(run("5", 3, {}), right);
}

TEST_F(CudaGraphs, AWrongNumberOfStreamsIsNamed) {
  for (const char* wrong : {"0", "x", "17", "2x", ""}) {
    try {
      open(wrong);
      ADD_FAILURE() << wrong;
    } catch (const Error& e) {
      EXPECT_EQ(e.code, Code::invalid);
      EXPECT_THAT(e.what(), testing::HasSubstr("TUTTI_CUDA_STREAMS="));
    }
  }
}

TEST_F(CudaGraphs, AFailingBranchLeavesNothingBehind) {
  for (const char* call : {"cuEventCreate", "cuEventRecord", "cuStreamWaitEvent", "cuStreamEndCapture"}) {
    auto driver = open("3");
    sdk::MemoryId m = driver->allocate(1024, "m");
    std::vector<sdk::Launch> launches;
    for (uint64_t at : {256, 512, 768}) launches.push_back({0, {{m, 0, 4}, {m, at, 4}}, {1, 1, 1}, "copy", true});
    seen.failing[call] = CUDA_ERROR_INVALID_VALUE;
    EXPECT_NO_THROW(driver->record(launches, nullptr)) << "launched one by one after " << call;
    seen.failing.clear();
    EXPECT_EQ(seen.live_events, 0u) << call;
    EXPECT_EQ(seen.live_graphs, 0u) << call;
    EXPECT_NO_THROW(driver->record(launches, nullptr)) << "the streams can capture again after " << call;
  }
}

}  // namespace
}  // namespace tutti::cuda
