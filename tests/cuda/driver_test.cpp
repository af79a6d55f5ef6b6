// The CUDA driver's host side over a table of fake functions; nothing here needs a GPU.
#include "backends/cuda/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>

#include "backends/cuda/open.h"
#include "kernels/codegen/kernel.h"
#include "kernels/codegen/portable.h"
#include "tests/cuda/fake_cuda.h"
#include "tests/support/error_of.h"
#include "tests/support/folder.h"

namespace tutti::cuda {
namespace {

using test::error_from;
using testing::Contains;
using testing::HasSubstr;

// `pip install` puts NVIDIA's libraries into site-packages/nvidia/PART/lib.
TEST(CudaOpen, LibrariesOfPyPIBesideAWheel) {
  test::Folder site;
  for (const char* part : {"nvidia/cu13/lib", "nvidia/cudnn/lib", "nvidia/cudnn/include", "nvidia/headers_only",
                           "tutti/lib/tutti/plugins"})
    std::filesystem::create_directories(site / part);
  EXPECT_THAT(wheel_folders(site / "tutti/lib/tutti/plugins/libtutti_cuda.so"),
              testing::ElementsAre(site / "nvidia/cu13/lib", site / "nvidia/cudnn/lib"));
  EXPECT_THAT(wheel_folders(site / "lib/tutti/plugins/libtutti_cuda.so"), testing::IsEmpty());
  EXPECT_THAT(wheel_folders(""), testing::IsEmpty());
}

class CudaTest : public testing::Test {
 protected:
  fake::State& seen = fake::reset();
  std::shared_ptr<const Libraries> libraries = start(fake::cuda(), fake::nvrtc());
  std::vector<Found> found = find_devices(*libraries);

  std::unique_ptr<Driver> open() { return std::make_unique<Driver>(libraries, found.at(0)); }
  static sdk::KernelSource source(uint32_t buffers) {
    sdk::KernelSource s;
    s.text = "extern \"C\" __global__ void kernel_main(float* x) {}\n";
    s.written.resize(buffers, true);
    return s;
  }
};

/// A sequence of an upload, a kernel and a copy.
struct Recorded {
  explicit Recorded(Driver& d) : driver(d) {
    a = d.allocate(256, "a");
    b = d.allocate(256, "b");
    std::vector<std::byte> cache;
    sdk::KernelSource s;
    s.text = "x";
    s.written.resize(1, true);
    sdk::KernelId k = d.build(s, cache);
    host = static_cast<int*>(d.allocate_host(256, "feeds"));
    std::iota(host, host + 64, 7);
    sdk::Upload upload{host, {a, 0, 256}, {d.allocate(256, "upload buffer"), 0, 256}};
    std::vector<sdk::Launch> launches = {{k, {{a, 0, 256}}, {3, 1, 1}, "a kernel"},
                                         {0, {{a, 0, 256}, {b, 0, 256}}, {1, 1, 1}, "a copy", true}};
    sequence = d.record(launches, &upload);
  }
  int first_of_b() {
    int x = 0;
    driver.read({b, 0, 4}, &x);
    return x;
  }
  Driver& driver;
  sdk::MemoryId a, b;
  int* host;
  sdk::SequenceId sequence;
};

TEST(CudaVersions, ArchitectureIsTheDevicesOwnOrAnOlderOneAsPtx) {
  EXPECT_EQ(architecture_for(90, {75, 80, 90}), "sm_90");
  EXPECT_EQ(architecture_for(103, {75, 80, 90}), "compute_90");
  EXPECT_EQ(architecture_for(70, {75, 80, 90}), "");
}

TEST(CudaVersions, AnOldDriverIsNamedWithWhatIsNeeded) {
  fake::reset().driver_version = 12040;
  Error e = error_from([] { start(fake::cuda(), fake::nvrtc()); });
  EXPECT_EQ(e.code, Code::declined);
  EXPECT_THAT(e.what(), HasSubstr("driver too old for CUDA 13: found one for CUDA 12.4, need 13.0"));
}

TEST(CudaVersions, AnOlderCompilerServesAnOlderDriver) {
  fake::reset().driver_version = 12040;
  fake::state().nvrtc_major = 12;
  EXPECT_EQ(start(fake::cuda(), fake::nvrtc())->driver_version, 12040);
}

TEST(CudaVersions, OfSeveralCompilersTheNewestThatTheDriverTakesIsChosen) {
  std::vector<std::string> opened;
  std::map<std::string, int> there = {{"libnvrtc.so.13", 13000}, {"/toolkit/libnvrtc.so.12", 12080}};
  auto open = [&](const std::string& name) -> std::unique_ptr<FoundNvrtc> {
    opened.push_back(name);
    auto at = there.find(name);
    return at == there.end() ? nullptr : std::make_unique<FoundNvrtc>(FoundNvrtc{fake::nvrtc(), at->second});
  };
  std::vector<std::string> names = {"libnvrtc.so.13", "libnvrtc.so.12", "/toolkit/libnvrtc.so.12", "libnvrtc.so"};
  choose_nvrtc(names, 13000, open, "");
  EXPECT_EQ(opened.size(), 1u);
  opened.clear();
  choose_nvrtc(names, 12040, open, "");
  EXPECT_EQ(opened.back(), "/toolkit/libnvrtc.so.12");
  there.erase("/toolkit/libnvrtc.so.12");
  EXPECT_THAT(error_from([&] { choose_nvrtc(names, 12040, open, ""); }).what(),
              HasSubstr("driver too old for CUDA 13: found one for CUDA 12.4"));
  there.clear();
  EXPECT_THAT(error_from([&] { choose_nvrtc(names, 12040, open, "no such file"); }).what(), HasSubstr("no such file"));
}

TEST_F(CudaTest, TimedLaunchesGoOneByOneBetweenEvents) {
  auto driver = open();
  Recorded r(*driver);
  int events = seen.live_events;
  std::vector<std::byte> cache;
  sdk::KernelId k = driver->build(source(1), cache);
  std::vector<sdk::Launch> launches = {{k, {{r.a, 0, 256}}, {3, 1, 1}, "a kernel"},
                                       {0, {{r.a, 0, 256}, {r.b, 0, 256}}, {1, 1, 1}, "a copy", true}};
  sdk::Upload upload{r.host, {r.a, 0, 256}, {driver->allocate(256, "upload buffer"), 0, 256}};
  std::optional<sdk::SequenceId> s = driver->record_timed(launches, &upload);
  ASSERT_TRUE(s);
  driver->wait(driver->submit(*s), ~0ull);
  EXPECT_EQ(r.first_of_b(), 7);
  std::vector<sdk::Interval> times = driver->times(*s);
  ASSERT_EQ(times.size(), 3u) << "the upload, the kernel, the copy";
  for (size_t i = 1; i < times.size(); ++i) EXPECT_EQ(times[i].begin, times[i - 1].end);
  driver->forget(*s);
  EXPECT_LE(seen.live_events, events + 1) << "but for the flight's";
}

/// Whether a library of that name is loaded.
bool loaded(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  std::stringstream all;
  all << maps.rdbuf();
  return all.str().find(name) != std::string::npos;
}

TEST(CudaVersions, TheCompilersBuiltinsAreLoadedFromItsFolder) {
  // NVRTC looks for them by their bare name when it compiles, in vain where only a path led to it.
  ASSERT_FALSE(loaded("libnvrtc-builtins"));
  try {
    open_nvrtc();
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  EXPECT_TRUE(loaded("libnvrtc-builtins"));
}

TEST(CudaVersions, NoDeviceIsSaid) {
  fake::reset().failing["cuInit"] = CUDA_ERROR_NO_DEVICE;
  EXPECT_THAT(error_from([] { start(fake::cuda(), fake::nvrtc()); }).what(), HasSubstr("finds no GPU"));
}

TEST_F(CudaTest, EveryDeviceIsListedWithItsHardware) {
  seen.devices = 2;
  found = find_devices(*libraries);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].info.name, "Fake GPU 1");
  EXPECT_EQ(found[1].info.pci, "0000:a1:00.0");  // lower case, as the other plugins write it
  EXPECT_EQ(found[1].info.uuid[0], 2);
  EXPECT_EQ(found[0].architecture, "sm_90");
  EXPECT_EQ(traits_of(*libraries, found[0]).compute_units, 132u);
}

TEST_F(CudaTest, AnOldGpuIsUnusableWithReason) {
  seen.capability = 61;
  EXPECT_THAT(find_devices(*libraries)[0].info.unusable, HasSubstr("GPUs older than sm_75; this GPU is sm_61"));
}

TEST_F(CudaTest, ADriverThatCannotOpenLeavesNothing) {
  for (const char* streams : {"1", "3"}) {
    setenv("TUTTI_CUDA_STREAMS", streams, 1);
    EXPECT_EQ(error_from([&] {
                Driver(libraries, found.at(0), []() -> std::unique_ptr<const sdk::Library> {
                  throw Error(Code::internal, "a library that fails");
                });
              }).code,
              Code::internal);
    unsetenv("TUTTI_CUDA_STREAMS");
    EXPECT_EQ(seen.live_streams, 0u);
  }
  EXPECT_EQ(seen.retained, 1u) << "the device's context stays for the next session";
  libraries.reset();
  EXPECT_EQ(seen.retained, 0u);
}

TEST_F(CudaTest, MemoryIsWrittenReadAndFreed) {
  {
    auto driver = open();
    sdk::MemoryId m = driver->allocate(64, "a test");
    std::vector<int> x(16), y(16);
    std::iota(x.begin(), x.end(), 1);
    driver->write({m, 0, 64}, x.data());
    driver->read({m, 0, 64}, y.data());
    EXPECT_EQ(x, y);
    driver->fill_zero({m, 8, 8});
    driver->read({m, 0, 64}, y.data());
    EXPECT_EQ(y[1], 2);
    EXPECT_EQ(y[2] | y[3], 0);
    EXPECT_EQ(y[4], 5);
    EXPECT_EQ(error_from([&] { driver->read({m, 32, 64}, y.data()); }).code, Code::invalid);
    driver->release(m);
    EXPECT_EQ(seen.allocated, 0u);
    driver->allocate(32, "what the destructor frees");
    driver->allocate_host(32, "host");
  }
  EXPECT_EQ(seen.allocated, 0u);
  EXPECT_EQ(seen.count("cuMemFreeHost"), 1u);
}

TEST_F(CudaTest, TheContextIsRetainedOnceForAllSessions) {
  open();
  open();
  EXPECT_EQ(seen.count("cuDevicePrimaryCtxRetain"), 1u);
  EXPECT_EQ(seen.retained, 1u);
}

TEST_F(CudaTest, EveryCallLeavesTheContextThatWasCurrentBefore) {
  CUcontext theirs = fake::foreign_context(), now = nullptr;
  auto same = [&](const char* after) {
    fake::cuda().cuCtxGetCurrent(&now);
    EXPECT_EQ(now, theirs) << after;
  };
  auto driver = open();
  same("opening");
  Recorded r(*driver);
  same("recording");
  uint64_t ticket = driver->submit(r.sequence);
  same("submitting");
  driver->wait(ticket, ~uint64_t{0});
  same("waiting");
  EXPECT_EQ(r.first_of_b(), 7);
  same("reading");
  error_from([&] { driver->allocate(uint64_t{1} << 40, "too much"); });
  same("a failure");
  driver.reset();
  same("closing");
}

TEST_F(CudaTest, AnErrorThatSticksIsSaidToEveryLaterSession) {
  auto driver = open();
  Recorded r(*driver);
  seen.failing["cuEventSynchronize"] = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(error_from([&] { driver->wait(driver->submit(r.sequence), ~uint64_t{0}); }).code, Code::device_lost);
  seen.failing.clear();
  driver.reset();
  Error e = error_from([&] { open(); });
  EXPECT_EQ(e.code, Code::device_lost);
  EXPECT_THAT(e.what(), HasSubstr("from 'a kernel' to 'a copy' failed on the device"));
  EXPECT_THAT(e.remedy, HasSubstr("start the program again"));
}

TEST_F(CudaTest, AKernelThatBreaksTheDeviceIsFoundWhereItIsWaitedFor) {
  seen.kernel = [](CUfunction, void**) { return [] { fake::fault(CUDA_ERROR_ILLEGAL_ADDRESS); }; };
  auto driver = open();
  Recorded r(*driver);
  uint64_t ticket = driver->submit(r.sequence);
  EXPECT_EQ(error_from([&] { driver->wait(ticket, ~uint64_t{0}); }).code, Code::device_lost);
}

TEST_F(CudaTest, AKernelThatTakesTooManyRegistersForItsBlockIsNamed) {
  auto driver = open();
  seen.most_threads = 128;
  sdk::KernelSource s = source(1);
  s.local = {256, 1, 1};
  std::vector<std::byte> cache;
  Error e = error_from([&] { driver->build(s, cache); });
  EXPECT_EQ(e.code, Code::compile);
  EXPECT_THAT(e.what(), HasSubstr("its block has 256 threads, but its register use allows only 128"));
  EXPECT_EQ(seen.live_modules, 0u);
}

TEST_F(CudaTest, OutOfMemoryNamesWhatAndHowMuchIsLeft) {
  auto driver = open();
  Error e = error_from([&] { driver->allocate(8 << 20, "the arena"); });
  EXPECT_EQ(e.code, Code::no_memory);
  EXPECT_THAT(e.what(), HasSubstr("not enough memory for the arena of 8.0 MiB: 1.0 MiB of 1.0 MiB are free"));
  EXPECT_NO_THROW(driver->allocate(64, "less"));  // the device is not lost
}

TEST_F(CudaTest, KernelsAreCompiledForTheDeviceAndCached) {
  auto driver = open();
  std::vector<sdk::KernelSource> sources(5, source(1));
  sources[3].exact = true;
  std::vector<std::vector<std::byte>> caches(5);
  EXPECT_EQ(driver->build_all(sources, caches).size(), 5u);
  EXPECT_EQ(seen.compiled, 5u);
  EXPECT_THAT(seen.compile_options, Contains("--gpu-architecture=sm_90"));
  driver->build_all(sources, caches);
  EXPECT_EQ(seen.compiled, 5u);
  caches[2] = {std::byte{'?'}, std::byte{'?'}, std::byte{'?'}, std::byte{'?'}, std::byte{'?'}};  // not one of ours
  driver->build_all(sources, caches);
  EXPECT_EQ(seen.compiled, 6u);
  driver.reset();
  EXPECT_EQ(seen.live_modules, 0u);
}

TEST_F(CudaTest, ACachedKernelThatIsRefusedIsSaid) {
  std::vector<std::string> lines;
  Driver driver(libraries, found.at(0), {}, [&](const std::string& line) { lines.push_back(line); });
  std::vector<std::byte> cache;
  driver.build(source(1), cache);
  driver.build(source(1), cache);
  EXPECT_THAT(lines, testing::IsEmpty());
  cache.assign(5, std::byte{'?'});
  driver.build(source(1), cache);
  EXPECT_THAT(lines, testing::ElementsAre(HasSubstr("cannot load a kernel from the cache, so it is compiled again")));
}

TEST_F(CudaTest, KernelsBesideOneThatFailsAreUnloaded) {
  auto driver = open();
  std::vector<sdk::KernelSource> sources(3, source(1));
  std::vector<std::vector<std::byte>> caches(3);
  driver->build_all({sources.data(), 2}, {caches.data(), 2});  // two of the three are in the cache
  size_t before = seen.live_modules;
  seen.compile_error = "error: no";
  Error e = error_from([&] { driver->build_all(sources, caches); });
  EXPECT_EQ(e.code, Code::compile);
  std::string text = e.what();
  std::remove(text.substr(text.rfind(' ') + 1).c_str());
  EXPECT_EQ(seen.live_modules, before);
}

TEST_F(CudaTest, RenderedKernelsAreNamedAfterWhatTheyCompute) {
  codegen::Target target;
  target.language = &codegen::Language::cuda_c();
  auto product = [&] {
    return codegen::render(target, *codegen::matmul(target, {DType::f32, 64, 64, 64}).launches.at(0).kernel);
  };
  codegen::KernelSource named = product();
  EXPECT_THAT(named.entry, testing::StartsWith("tutti_matmul_"));
  EXPECT_THAT(named.text, HasSubstr(" " + named.entry + "("));
  EXPECT_EQ(named.text.find("kernel_main"), std::string::npos);
  codegen::KernelSource again = product();
  EXPECT_EQ(named.text, again.text) << "nodes of one shape share their kernel";
}

TEST_F(CudaTest, ExactKernelsAreNotContracted) {
  auto driver = open();
  sdk::KernelSource s = source(1);
  s.exact = true;
  std::vector<std::byte> cache;
  driver->build(s, cache);
  EXPECT_THAT(seen.compile_options, Contains("--fmad=false"));
}

TEST_F(CudaTest, AKernelThatDoesNotCompileIsKeptInAFile) {
  auto driver = open();
  seen.compile_error = "kernel.cu(1): error: identifier \"y\" is undefined";
  std::vector<sdk::KernelSource> sources(3, source(1));
  std::vector<std::vector<std::byte>> caches(3);
  Error e = error_from([&] { driver->build_all(sources, caches); });
  EXPECT_EQ(e.code, Code::compile);
  EXPECT_THAT(e.what(), HasSubstr("identifier \"y\" is undefined"));
  std::string text = e.what(), path = text.substr(text.rfind(" /") + 1);
  std::stringstream kept;
  kept << std::ifstream(path).rdbuf();
  EXPECT_THAT(kept.str(), HasSubstr("1  extern \"C\" __global__"));
  std::remove(path.c_str());
}

TEST_F(CudaTest, AStepIsOneGraphLaunch) {
  auto driver = open();
  Recorded r(*driver);
  EXPECT_EQ(seen.count("cuLaunchKernel"), 1u);  // captured
  size_t before = seen.calls.size();
  EXPECT_EQ(driver->submit(r.sequence), 1u);
  EXPECT_EQ(seen.count("cuLaunchKernel"), 1u);
  EXPECT_EQ(seen.count("cuGraphLaunch"), 1u);
  EXPECT_EQ(
      std::count(seen.calls.begin() + static_cast<std::ptrdiff_t>(before), seen.calls.end(), "cuStreamSynchronize"), 0);
  driver->wait(1, ~uint64_t{0});
  EXPECT_EQ(r.first_of_b(), 7);
  r.host[0] = 99;
  driver->wait(driver->submit(r.sequence), 1'000'000'000);
  EXPECT_EQ(r.first_of_b(), 99);
  driver->forget(r.sequence);
  EXPECT_EQ(seen.live_graphs, 0u);
}

TEST_F(CudaTest, WithoutGraphsTheSameIsLaunchedOneByOne) {
  setenv("TUTTI_CUDA_GRAPH", "0", 1);
  auto driver = open();
  unsetenv("TUTTI_CUDA_GRAPH");
  Recorded r(*driver);
  EXPECT_EQ(seen.count("cuLaunchKernel"), 0u);
  driver->wait(driver->submit(r.sequence), ~uint64_t{0});
  EXPECT_EQ(seen.count("cuLaunchKernel"), 1u);
  EXPECT_EQ(seen.count("cuGraphLaunch"), 0u);
  EXPECT_EQ(r.first_of_b(), 7);
}

class CudaLateError : public CudaTest, public testing::WithParamInterface<CUresult> {};

TEST_P(CudaLateError, LosesTheDeviceForEver) {
  auto driver = open();
  Recorded r(*driver);
  uint64_t ticket = driver->submit(r.sequence);
  seen.failing["cuEventSynchronize"] = GetParam();
  Error e = error_from([&] { driver->wait(ticket, ~uint64_t{0}); });
  EXPECT_EQ(e.code, Code::device_lost);
  EXPECT_THAT(e.what(), HasSubstr("one of 2 launches from 'a kernel' to 'a copy' failed on the device"));
  seen.failing.clear();
  EXPECT_EQ(error_from([&] { driver->submit(r.sequence); }).code, Code::device_lost);
  driver.reset();
  EXPECT_EQ(seen.live_events, 0u);
}
// CUDA_ERROR_INVALID_HANDLE: nothing that the driver calls lost, but what the step wrote is unknown.
INSTANTIATE_TEST_SUITE_P(Results, CudaLateError, testing::Values(CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_INVALID_HANDLE),
                         [](const auto& info) { return std::to_string(info.param); });

TEST_F(CudaTest, AFailingLaunchIsNamed) {
  setenv("TUTTI_CUDA_GRAPH", "0", 1);
  auto driver = open();
  unsetenv("TUTTI_CUDA_GRAPH");
  Recorded r(*driver);
  seen.failing["cuLaunchKernel"] = CUDA_ERROR_INVALID_VALUE;
  EXPECT_THAT(error_from([&] { driver->submit(r.sequence); }).what(), HasSubstr("launching 'a kernel'"));
}

TEST_F(CudaTest, ACaptureThatFailsLeavesNothingBehindAndLaunchesGoOneByOne) {
  auto driver = open();
  seen.failing["cuLaunchKernel"] = CUDA_ERROR_INVALID_VALUE;
  Recorded r(*driver);
  EXPECT_EQ(seen.live_graphs, 0u);
  EXPECT_THAT(error_from([&] { driver->submit(r.sequence); }).what(), HasSubstr("launching 'a kernel'"));
  seen.failing.clear();
  driver->wait(driver->submit(r.sequence), ~uint64_t{0});
  EXPECT_EQ(r.first_of_b(), 7);
}

TEST_F(CudaTest, ACaptureThatBreaksTheDeviceIsNotTriedAgain) {
  auto driver = open();
  seen.failing["cuLaunchKernel"] = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(error_from([&] { Recorded r(*driver); }).code, Code::device_lost);
}

TEST_F(CudaTest, WaitingTimesOut) {
  auto driver = open();
  Recorded r(*driver);
  uint64_t ticket = driver->submit(r.sequence);
  seen.failing["cuEventQuery"] = CUDA_ERROR_NOT_READY;
  EXPECT_EQ(error_from([&] { driver->wait(ticket, 1000); }).code, Code::timeout);
  seen.failing.clear();
  EXPECT_NO_THROW(driver->wait(ticket, 10'000'000'000));
}

TEST_F(CudaTest, BadLaunchesAreRefused) {
  auto driver = open();
  sdk::MemoryId m = driver->allocate(512, "m");
  std::vector<std::byte> cache;
  sdk::KernelId k = driver->build(source(1), cache);
  auto record = [&](sdk::Launch l) { return error_from([&] { driver->record({&l, 1}, nullptr); }).code; };
  EXPECT_EQ(record({k, {{m, 0, 256}}, {1, 1, 1}, "good"}), Code::ok);
  EXPECT_EQ(record({k, {{m, 0, 256}, {m, 256, 256}}, {1, 1, 1}, "too many"}), Code::invalid);
  EXPECT_EQ(record({k, {{m, 4, 256}}, {1, 1, 1}, "misaligned"}), Code::invalid);
  EXPECT_EQ(record({k, {{m, 256, 512}}, {1, 1, 1}, "past the end"}), Code::invalid);
  EXPECT_EQ(record({k, {{m, 0, 256}}, {0, 1, 1}, "no groups"}), Code::invalid);
  EXPECT_EQ(record({k + 1, {{m, 0, 256}}, {1, 1, 1}, "no such kernel"}), Code::invalid);
}

}  // namespace
}  // namespace tutti::cuda
