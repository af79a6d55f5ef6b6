// Algorithms chosen by measuring: the choice by itself, then with the libraries' fakes and their cost on a fake clock.
#include "backends/cuda/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <utility>

#include "backends/cuda/device_timer.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/vendor.h"
#include "sdk/rendered/rendered.h"
#include "tests/cuda/fake_device.h"
#include "tests/cuda/fake_host.h"
#include "tests/sdk/raw_program.h"
#include "tests/support/error_of.h"

namespace tutti::cuda {
namespace {

constexpr uint64_t plenty = 1 << 30;

sdk::LibraryRequest within(uint64_t bytes) { return {.trial = true, .tuning_bytes = bytes}; }

[[maybe_unused]] const int traced = setenv("TUTTI_TRACE", "dispatch", 1);  // which is read once

struct Algorithm {
  double seconds;
  size_t workspace = 0;
  bool keeps_nan = true;
};

/// A call whose algorithms take known times.
class Timed : public Tunable {
 public:
  explicit Timed(std::vector<Algorithm> algorithms) : algorithms(std::move(algorithms)) {}
  void run(CUstream, std::span<const CUdeviceptr>) const override {}
  size_t candidates() const override { return algorithms.size(); }
  void select(size_t candidate) override { selected = candidate; }
  size_t workspace() const override { return algorithms.at(selected).workspace; }
  std::vector<uint64_t> buffer_bytes() const override { return {100, 200}; }
  size_t inputs() const override { return 1; }
  DType dtype() const override { return DType::f32; }
  bool activates() const override { return bends; }
  std::string description() const override { return text; }
  std::vector<std::byte> saved() const override { return {std::byte(selected)}; }
  bool restore(std::span<const std::byte> algorithm) override {
    if (refuses || algorithm.size() != 1) return false;
    selected = static_cast<size_t>(algorithm[0]);
    return true;
  }

  std::vector<Algorithm> algorithms;
  std::string text = "a product";
  size_t selected = 0;
  bool refuses = false, bends = false;
};

/// Hands out the known times, and counts. A negative one is a failure.
struct Stopwatch : CallTimer {
  void open(std::span<const uint64_t> bytes) override {
    if (full) throw Error(Code::no_memory, "no room");
    ++opened;
    sizes.assign(bytes.begin(), bytes.end());
  }
  void fill(size_t buffer, unsigned char byte) override {
    if (buffer == 0) nan = byte == 0xFF;
  }
  void run(const Call& call) override {
    ++runs;
    const Algorithm& a = algorithm(call);
    if (a.seconds < 0) throw Error(failure, "it fails");
    nan = nan && a.keeps_nan;
  }
  std::vector<std::byte> read(size_t, uint64_t bytes) override {
    return std::vector<std::byte>(bytes, std::byte(nan ? 0xFF : 0));
  }
  double seconds(const Call& call) override {
    ++measured;
    if (meanwhile) std::exchange(meanwhile, {})();
    return algorithm(call).seconds;
  }
  void close() override { --opened; }

  static const Algorithm& algorithm(const Call& call) {
    const auto& c = static_cast<const Timed&>(call);
    return c.algorithms[c.selected];
  }

  int opened = 0, runs = 0, measured = 0;
  bool nan = false;
  std::function<void()> meanwhile;  ///< at the next call
  bool full = false;
  Code failure = Code::internal;
  std::vector<uint64_t> sizes;
};

class Tuning : public testing::Test {
 protected:
  fake::CacheHost host;
  Stopwatch* watch = nullptr;

  Tuner tuner(const std::string& device = "a GPU") {
    auto timer = std::make_unique<Stopwatch>();
    watch = timer.get();
    return {std::move(timer), host.host(), device};
  }
};

TEST_F(Tuning, TheFastestIsTakenAndRemembered) {
  Timed call({{3e-6}, {1e-6, 64}, {2e-6}});
  Tuner first = tuner();
  first.choose(call, within(plenty));
  EXPECT_EQ(call.selected, 1u);
  EXPECT_EQ(watch->runs, 3) << "what has run when it was measured needs no trial";
  Timed again({{3e-6}, {1e-6, 64}, {2e-6}});
  Tuner second = tuner();
  second.choose(again, within(plenty));
  EXPECT_EQ(again.selected, 1u);
  EXPECT_EQ(watch->measured, 0) << "measured once";
}

TEST_F(Tuning, TheTraceSaysWhatWasChosenOfHowMany) {
  Timed call({{3e-6}, {1e-6}, {-1}});
  tuner().choose(call, within(plenty));
  tuner().choose(call, within(plenty));
  EXPECT_THAT(host.lines, testing::ElementsAre("a product: algorithm 2 of 3 (1: 3.0 us; 2: 1.0 us; 3: it fails)",
                                               "a product: the cached algorithm"));
}

TEST_F(Tuning, BuffersAndTheLargestWorkspaceAreTheBenchs) {
  Timed call({{3e-6, 8}, {1e-6, 64}, {2e-6}});
  Tuner t = tuner();
  t.choose(call, within(plenty));
  EXPECT_EQ(watch->sizes, (std::vector<uint64_t>{100, 200, 64}));
  EXPECT_EQ(watch->opened, 0) << "and given back";
}

TEST_F(Tuning, ALittleFasterIsNoise) {
  Timed call({{1e-6}, {0.99e-6}});
  tuner().choose(call, within(plenty));
  EXPECT_EQ(call.selected, 0u);
}

TEST_F(Tuning, OneCandidateIsNotMeasured) {
  Timed call(std::vector<Algorithm>{{3e-6}});
  Tuner t = tuner();
  t.choose(call, within(plenty));
  EXPECT_EQ(watch->measured, 0);
  EXPECT_EQ(watch->runs, 1) << "but tried";
  t.choose(call, within(plenty));
  EXPECT_EQ(watch->runs, 1) << "once";
  EXPECT_TRUE(host.entries.empty());
}

TEST_F(Tuning, NothingIsMeasuredWithoutMemoryForIt) {
  Timed call({{3e-6}, {1e-6, 64}, {2e-6, 64}});
  Tuner t = tuner();
  t.choose(call, within(0));
  t.choose(call, within(300 + 63));  // the buffers and one candidate
  EXPECT_EQ(call.selected, 0u);
  EXPECT_EQ(watch->measured, 0);
  t.choose(call, within(300 + 64));
  EXPECT_EQ(call.selected, 1u);
}

TEST_F(Tuning, AChoiceThatIsNotKeptIsNotMade) {
  host.keeps = false;
  Timed call({{3e-6}, {1e-6}});
  Tuner t = tuner();
  t.choose(call, within(plenty));
  EXPECT_EQ(call.selected, 0u) << "the next run would have to measure again, and might choose another";
  t.choose(call, within(plenty));
  EXPECT_EQ(watch->measured, 2) << "and it is not tried again";
}

TEST_F(Tuning, WhatAnotherProcessHasChosenMeanwhileStays) {
  Timed call({{3e-6}, {1e-6}, {2e-6}}), same({{3e-6}, {2e-6}, {1e-6}}), later({{3e-6}, {1e-6}, {2e-6}});
  Tuner t = tuner();
  watch->meanwhile = [&] { Tuner(std::make_unique<Stopwatch>(), host.host(), "a GPU").choose(same, within(plenty)); };
  t.choose(call, within(plenty));
  EXPECT_EQ(same.selected, 2u);
  EXPECT_EQ(call.selected, 2u) << "or this run and the next would not compute the same bits";
  tuner().choose(later, within(plenty));
  EXPECT_EQ(later.selected, 2u);
}

TEST_F(Tuning, ARefusedEntryIsMeasuredAgain) {
  Timed call({{3e-6}, {1e-6}});
  Tuner t = tuner();
  t.choose(call, within(plenty));
  call.refuses = true;
  call.algorithms = {{3e-6}, {4e-6}, {2e-6}};
  t.choose(call, within(plenty));
  EXPECT_EQ(call.selected, 2u);
}

TEST_F(Tuning, AnEntryOfAnotherTextIsNotTaken) {
  Timed call({{3e-6}, {1e-6}});
  tuner().choose(call, within(plenty));
  ASSERT_EQ(host.entries.size(), 1u);
  host.entries.begin()->second[0] = std::byte{'?'};
  Tuner second = tuner();
  second.choose(call, within(plenty));
  EXPECT_EQ(watch->measured, 2);
}

TEST_F(Tuning, DevicesAndShapesAreApart) {
  Timed call({{3e-6}, {1e-6}});
  tuner().choose(call, within(plenty));
  Tuner other = tuner("another GPU");
  other.choose(call, within(plenty));
  EXPECT_EQ(watch->measured, 2);
  call.text = "another product";
  other.choose(call, within(plenty));
  EXPECT_EQ(watch->measured, 4);
  EXPECT_EQ(host.entries.size(), 3u);
}

TEST_F(Tuning, AFailingCandidateDropsOut) {
  Timed call({{3e-6}, {-1}, {2e-6}});
  tuner().choose(call, within(plenty));
  EXPECT_EQ(call.selected, 2u);
}

TEST_F(Tuning, ALostDeviceIsAnError) {
  Timed call({{3e-6}, {-1}});
  Tuner t = tuner();
  watch->failure = Code::device_lost;
  EXPECT_THROW(t.choose(call, within(plenty)), Error);
  EXPECT_EQ(watch->opened, 0);
  EXPECT_TRUE(host.entries.empty());
}

TEST_F(Tuning, WithoutRoomTheFirstIsTakenAndNotRemembered) {
  Timed call({{3e-6}, {1e-6}});
  Tuner t = tuner();
  watch->full = true;
  t.choose(call, within(plenty));
  EXPECT_EQ(call.selected, 0u);
  EXPECT_TRUE(host.entries.empty()) << "memory that was short once says nothing about the algorithms";
  watch->full = false;
  t.choose(call, within(plenty));
  EXPECT_EQ(call.selected, 1u);
}

TEST_F(Tuning, WhereEveryAlgorithmFailsTheCallIsDeclinedAndNothingRemembered) {
  for (uint64_t bytes : {uint64_t{0}, plenty}) {
    Timed call({{-1}, {-1}});
    Tuner t = tuner();
    for (int k = 0; k < 2; ++k) {
      Error e = test::error_from([&] { t.choose(call, within(bytes)); });
      EXPECT_EQ(e.code, Code::declined);
      EXPECT_STREQ(e.what(), "it fails");
    }
    EXPECT_LE(watch->runs, 4) << "what is known is not tried again";
    EXPECT_TRUE(host.entries.empty());
  }
}

TEST_F(Tuning, WithoutMeasuringTheFirstThatRunsIsTaken) {
  Timed call({{-1}, {2e-6}, {1e-6}});
  tuner().choose(call, within(0));
  EXPECT_EQ(call.selected, 1u);
}

TEST_F(Tuning, ARememberedAlgorithmThatFailsNowIsMeasuredAgain) {
  Timed call({{3e-6}, {1e-6}, {2e-6}});
  tuner().choose(call, within(plenty));
  call.algorithms[1].seconds = -1;
  tuner().choose(call, within(plenty));
  EXPECT_EQ(call.selected, 2u);
}

TEST_F(Tuning, AnActivationThatMakesANumberOfNanIsNotTaken) {
  Timed call({{1e-6, 0, false}, {2e-6, 0, true}});
  call.bends = true;
  tuner().choose(call, within(plenty));
  EXPECT_EQ(call.selected, 1u);
  call.algorithms[1].keeps_nan = false;
  Error e = test::error_from([&] { tuner("another GPU").choose(call, within(plenty)); });
  EXPECT_EQ(e.code, Code::declined);
  EXPECT_THAT(e.what(), testing::HasSubstr("does not propagate NaN"));
  call.bends = false;
  EXPECT_NO_THROW(tuner("a third").choose(call, within(plenty))) << "a plain product sums NaN anyhow";
}

TEST_F(Tuning, ARememberedAlgorithmIsTakenWithoutMeasuringAndWithoutRoom) {
  Timed call({{3e-6}, {1e-6}});
  call.bends = true;
  tuner().choose(call, within(plenty));
  for (bool full : {false, true}) {
    Timed again({{3e-6}, {1e-6}});
    again.bends = true;
    Tuner t = tuner();
    watch->full = full;
    t.choose(again, within(0));
    EXPECT_EQ(again.selected, 1u) << "or the bits would depend on the memory that is free";
  }
}

TEST_F(Tuning, WantOfMemoryIsNoRefusalForEver) {
  Timed call(std::vector<Algorithm>{{3e-6}});
  call.bends = true;
  Tuner t = tuner();
  watch->full = true;
  EXPECT_EQ(test::error_from([&] { t.choose(call, within(0)); }).code, Code::declined);
  watch->full = false;
  EXPECT_NO_THROW(t.choose(call, within(0)));
}

TEST_F(Tuning, WhatWasPromisedWithoutMeasuringStaysWhereMeasuringFindsNoRoom) {
  Timed call({{1e-6}, {2e-6}});
  call.bends = true;
  Tuner t = tuner();
  t.choose(call, within(0));
  watch->full = true;
  EXPECT_NO_THROW(t.choose(call, within(plenty)));
  EXPECT_EQ(call.selected, 0u);
}

TEST_F(Tuning, CanBeTurnedOff) {
  setenv("TUTTI_CUDA_TUNE", "0", 1);
  Tuner t = tuner();
  unsetenv("TUTTI_CUDA_TUNE");
  Timed call({{3e-6}, {1e-6}});
  t.choose(call, within(plenty));
  EXPECT_EQ(call.selected, 0u);
  EXPECT_EQ(watch->measured, 0);
}

/// The libraries' fakes, whose algorithms move a fake clock on.
class TunedVendors : public testing::Test {
 protected:
  fake::FakeDevice fakes;
  fake::State& device = fakes.seen;
  fake::CublasState& products = fakes.products;
  fake::CudnnState& convolutions = fakes.convolutions;
  fake::CacheHost host;
  sdk::LibraryRequest request = within(plenty);
  bool tf32 = false;
  Current in{*fakes.context};

  TunedVendors() {
    device.memory = 64 << 20;
    products.found = 3;
    products.workspace = 512;
    products.costs = {{1, 0.02}, {2, 0.01}, {3, 0.03}};
  }
  std::unique_ptr<const sdk::Library> library() { return fakes.library(tf32, host.host()); }
  /// The algorithm that runs afterwards.
  uint64_t product(const sdk::LibraryRequest& asked) {
    auto l = library();
    codegen::LaunchList work = l->matmul({DType::f32, 3, 4, 5}, asked);
    std::vector<std::vector<float>> memory(4, std::vector<float>(4096));
    std::vector<CUdeviceptr> buffers;
    for (auto& m : memory) buffers.push_back(reinterpret_cast<CUdeviceptr>(m.data()));
    static_cast<const Call*>(work.launches[0].library.get())->run(nullptr, buffers);
    return products.used;
  }
  int convolution(codegen::LaunchList (sdk::Library::*kind)(const codegen::Conv&, const sdk::LibraryRequest&) const) {
    codegen::Conv c{DType::f32, 1, 2, 3, 1, {4, 1, 1, 0, 1, 4}, {4, 1, 1, 0, 1, 4}};
    auto l = library();
    codegen::LaunchList work = ((*l).*kind)(c, request);
    std::vector<float> memory[3] = {std::vector<float>(256), std::vector<float>(256), std::vector<float>(256)};
    std::vector<CUdeviceptr> buffers;
    for (auto& m : memory) buffers.push_back(reinterpret_cast<CUdeviceptr>(m.data()));
    static_cast<const Call*>(work.launches[0].library.get())->run(nullptr, buffers);
    return convolutions.used;
  }
};

TEST_F(TunedVendors, TheFastestProductIsFoundOnTheDeviceAndKept) {
  EXPECT_EQ(product(request), 2u);
  int runs = products.products;
  EXPECT_EQ(product(request), 2u);
  EXPECT_EQ(products.products, runs + 2) << "nothing but a trial and the run itself";
  EXPECT_EQ(device.allocated, 0u) << "scratch memory is given back";
  EXPECT_EQ(device.live_graphs, 0u);
  EXPECT_EQ(device.live_events, 0u);
  EXPECT_EQ(device.live_streams, 0u);
  EXPECT_EQ(device.idle_timings, 0u) << "the host's launches would be measured";
  EXPECT_EQ(products.descriptors, 0);
}

TEST_F(TunedVendors, TheWorkspaceIsThatOfTheChoice) {
  codegen::LaunchList work = library()->matmul({DType::f32, 3, 4, 5}, request);
  EXPECT_EQ(work.scratch_bytes, std::vector<uint64_t>{2 * 512});
}

TEST_F(TunedVendors, ARankingIsAskedForOnce) {
  auto l = library();
  for (int k = 0; k < 2; ++k) l->matmul({DType::f32, 3, 4, 5}, request);
  EXPECT_EQ(products.rankings, 1);
  l->matmul({DType::f32, 3, 4, 5, true}, request);
  EXPECT_EQ(products.rankings, 2);
}

TEST_F(TunedVendors, WithoutTuningMemoryTheFirstProductIsTaken) {
  EXPECT_EQ(product(within(0)), 1u);
  EXPECT_EQ(products.products, 2) << "a trial and the run itself";
}

TEST_F(TunedVendors, AnAlgorithmThatTheLibraryRefusesNowIsMeasuredAgain) {
  EXPECT_EQ(product(request), 2u);
  products.refused = {2};
  products.costs = {{1, 0.03}, {2, 0.02}, {3, 0.01}};
  EXPECT_EQ(product(request), 3u);
}

TEST_F(TunedVendors, AnAlgorithmThatFailsIsNotTaken) {
  products.broken = {2};
  EXPECT_EQ(product(request), 1u);
  EXPECT_EQ(device.live_graphs, 0u);
}

TEST_F(TunedVendors, WithoutDeviceMemoryTheFirstIsTaken) {
  device.memory = 64;
  EXPECT_EQ(product(request), 1u);
  EXPECT_EQ(device.allocated, 0u);
  EXPECT_EQ(device.live_streams, 0u);
}

/// The state y = x w of states x [2, 3] and w [3, 4].
struct OneProduct : test::RawProgram {
  OneProduct() {
    uint32_t x = value(TUTTI_STATE, TUTTI_F32, {2, 3}, "x"), w = value(TUTTI_STATE, TUTTI_F32, {3, 4}, "w");
    uint32_t y = value(TUTTI_TEMP, TUTTI_F32, {2, 4});
    static const int64_t no = 0;
    node("matmul", {x, w}, {y});
    attrs({{"ta", TUTTI_ATTR_I64, 1, &no}, {"tb", TUTTI_ATTR_I64, 1, &no}});
    states = {{"x", x, x}, {"w", w, w}, {"y", TUTTI_NONE, y}};
  }
};

TEST_F(TunedVendors, ASessionTunesWhereItsHostAsksForIt) {
  for (uint64_t bytes : {uint64_t{0}, plenty}) {
    auto driver =
        std::make_unique<Driver>(fakes.libraries, find_devices(*fakes.libraries).at(0), [this] { return library(); });
    auto session = sdk::make_rendered_session(std::move(driver), host.host());
    TuttiOptions options = {sizeof(TuttiOptions), bytes ? uint32_t{TUTTI_OPT_TUNE} : 0u, bytes};
    std::vector<uint8_t> accepted(1);
    session->check(sdk::Program::parse(OneProduct().raw()), accepted, [](uint32_t, const std::string&) {});
    EXPECT_EQ(products.products, 0) << "to ask what it can run costs no trial";
    auto executable = session->compile(sdk::Program::parse(OneProduct().raw()), options);
    EXPECT_EQ(products.products > 1, bytes > 0) << "one trial, or measuring";
    executable->prepare();
    session->wait(executable->run(), ~0ull);
    EXPECT_EQ(products.used, bytes ? 2u : 1u);
    products.products = 0;
  }
}

TEST_F(TunedVendors, DeterministicConvolutionsCompete) {
  convolutions.third = true;
  convolutions.costs = {{CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, 0.02}, {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, 0.01}};
  EXPECT_EQ(convolution(&sdk::Library::conv), CUDNN_CONVOLUTION_FWD_ALGO_GEMM);
  int runs = convolutions.convolutions;
  EXPECT_EQ(convolution(&sdk::Library::conv), CUDNN_CONVOLUTION_FWD_ALGO_GEMM);
  EXPECT_EQ(convolutions.convolutions, runs + 2) << "a trial and the run itself";
  tf32 = true;
  convolutions.costs = {{CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, 0.02}, {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, 0.01}};
  EXPECT_EQ(convolution(&sdk::Library::conv_dx), CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD);
  convolutions.costs = {{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, 0.01},
                        {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, 0.02}};
  EXPECT_EQ(convolution(&sdk::Library::conv_dw), CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1);
}

TEST_F(TunedVendors, AHandleDoesNotKeepTheStreamOfATrial) {
  auto l = library();
  l->conv({DType::f32, 1, 2, 3, 1, {4, 1, 1, 0, 1, 4}, {4, 1, 1, 0, 1, 4}}, request);
  EXPECT_GT(convolutions.convolutions, 0);
  EXPECT_EQ(convolutions.stream, nullptr);
}

TEST_F(TunedVendors, OneDeterministicConvolutionIsTriedAndNotMeasured) {
  convolution(&sdk::Library::conv);
  EXPECT_EQ(convolutions.convolutions, 2);
  EXPECT_TRUE(host.entries.empty());
}

}  // namespace
}  // namespace tutti::cuda
