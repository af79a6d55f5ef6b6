// What only a real GPU can tell. Where there is none, every test here is skipped with the plugin's own reason.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "backends/cuda/device_timer.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/row_copy.h"
#include "backends/cuda/vendor.h"
#include "core/runtime/registry.h"
#include "tests/support/require.h"
#include "train/run/trainer.h"

namespace tutti::cuda {
namespace {

/// The first usable device of the plugin, or why there is none.
const Device& gpu() {
  static const Device& found = *new Device([] {
    Device none;
    none.unusable = "the cuda plugin is not loaded";
    for (const Device& d : Registry::instance().devices()) {
      if (d.plugin != "cuda") continue;
      if (d.unusable.empty()) return d;
      none = d;
    }
    return none;
  }());
  return found;
}

/// An environment variable for the length of a scope.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Setting() { unsetenv(name_); }
  Setting(const Setting&) = delete;

 private:
  const char* name_;
};

class CudaDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (!gpu().unusable.empty()) test::skip_without("cuda", "no device: " + gpu().unusable);
  }
};

std::unique_ptr<Driver> open() {
  auto libraries = open_libraries();
  return std::make_unique<Driver>(libraries, find_devices(*libraries).at(gpu().index));
}

/// b[i] = 0.1f * a[i] + b[i], 256 work-items per group.
sdk::KernelSource scaled_sum() {
  sdk::KernelSource s;
  s.text =
      "extern \"C\" __global__ void __launch_bounds__(256) kernel_main(const float* a, float* b) {\n"
      "  unsigned i = blockIdx.x * 256u + threadIdx.x;\n"
      "  b[i] = 0.1f * a[i] + b[i];\n"
      "}\n";
  s.local = {256, 1, 1};
  s.written = {false, true};
  return s;
}

constexpr size_t count = 1 << 16;
constexpr uint64_t bytes = count * sizeof(float);

/// Ten sequences of an upload, three kernels and a copy; what is in memory afterwards.
std::vector<float> ten_steps() {
  auto driver = open();
  sdk::MemoryId a = driver->allocate(bytes, "a"), b = driver->allocate(bytes, "b"), c = driver->allocate(bytes, "c");
  driver->fill_zero({b, 0, bytes});
  auto* host = static_cast<float*>(driver->allocate_host(bytes, "host"));
  std::vector<std::byte> cache;
  sdk::KernelId kernel = driver->build(scaled_sum(), cache);
  EXPECT_FALSE(cache.empty()) << "a binary to keep";
  EXPECT_NO_THROW(driver->build(scaled_sum(), cache)) << "loaded from the cache";
  sdk::Launch add{kernel, {{a, 0, bytes}, {b, 0, bytes}}, {count / 256, 1, 1}, "add"};
  sdk::Launch copy{0, {{b, 0, bytes}, {c, 0, bytes}}, {1, 1, 1}, "copy", true};
  sdk::Upload upload{host, {a, 0, bytes}, {driver->allocate(bytes, "upload buffer"), 0, bytes}};
  sdk::SequenceId sequence = driver->record(std::vector{add, add, add, copy}, &upload);
  for (int step = 0; step < 10; ++step) {
    std::iota(host, host + count, static_cast<float>(step));
    driver->wait(driver->submit(sequence), ~uint64_t{0});
  }
  std::vector<float> out(count);
  driver->read({c, 0, bytes}, out.data());
  return out;
}

TEST_F(CudaDevice, MemoryGoesThereAndBack) {
  auto driver = open();
  sdk::MemoryId m = driver->allocate(bytes, "a test");
  std::vector<uint32_t> x(count), y(count);
  std::iota(x.begin(), x.end(), 7u);
  driver->write({m, 0, bytes}, x.data());
  driver->fill_zero({m, 4, 3});
  driver->read({m, 0, bytes}, y.data());
  x[1] &= 0xFF000000u;
  EXPECT_EQ(x, y);
}

/// Copies rows of counted elements on the device and compares with the same on the host.
template <class Element>
void copy_rows(DeviceTimer& memory, const RowCopier& copier, const RowCopy& c) {
  struct Rows : Call {
    const RowCopier& copier;
    RowCopy copy;
    Rows(const RowCopier& k, const RowCopy& c) : copier(k), copy(c) {}
    void run(CUstream stream, std::span<const CUdeviceptr> b) const override { copier.run(stream, b[0], b[1], copy); }
  };
  std::vector<Element> from((c.rows - 1) * c.from_pitch + c.width), want(c.rows * c.to_pitch), got(want.size());
  std::iota(from.begin(), from.end(), Element{1});
  for (uint32_t r = 0; r < c.rows; ++r)
    std::copy_n(from.begin() + r * c.from_pitch, c.width, want.begin() + r * c.to_pitch);
  memory.open(std::vector<uint64_t>{from.size() * sizeof(Element), want.size() * sizeof(Element)});
  memory.write(0, std::as_bytes(std::span(from)));
  memory.fill(1, 0xA5);
  memory.run(Rows(copier, c));
  std::vector<std::byte> bytes = memory.read(1, want.size() * sizeof(Element));
  std::memcpy(got.data(), bytes.data(), bytes.size());
  EXPECT_EQ(got, want) << sizeof(Element) << " bytes, rows " << c.rows << " width " << c.width << " pitches "
                       << c.from_pitch << " " << c.to_pitch;
}

TEST_F(CudaDevice, RowsAreCopiedToAnotherDistance) {
  auto libraries = open_libraries();
  Found found = find_devices(*libraries).at(gpu().index);
  std::shared_ptr<Context> context = libraries->context(found.handle, found.info.name);
  Current in(*context);
  DeviceTimer memory(context);
  KernelMaker kernels(libraries, context, found.architecture, "a test", sdk::Host());
  RowCopier narrow(kernels, 2), wide(kernels, 4);
  for (uint32_t width : {1, 2, 3, 5, 7, 9, 12, 15, 31, 257, 2050}) {
    uint32_t pitch = (width + 7) / 8 * 8;
    for (RowCopy c :
         {RowCopy{3, width, width, pitch}, RowCopy{3, width, pitch, width}, RowCopy{1, width, pitch, width}}) {
      copy_rows<uint16_t>(memory, narrow, c);
      copy_rows<uint32_t>(memory, wide, c);
    }
  }
}

TEST_F(CudaDevice, MoreMemoryThanThereIsIsAnErrorOnly) {
  auto driver = open();
  try {
    driver->allocate(uint64_t{1} << 46, "a test");
    ADD_FAILURE() << "64 TiB";
  } catch (const Error& e) {
    EXPECT_EQ(e.code, Code::no_memory) << e.what();
  }
  EXPECT_NO_THROW(driver->allocate(bytes, "less"));
}

TEST_F(CudaDevice, GraphsAndSingleLaunchesGiveTheSameBits) {
  std::vector<float> graph = ten_steps();
  Setting off("TUTTI_CUDA_GRAPH", "0");
  EXPECT_EQ(graph, ten_steps());
  double a = 0;  // of the first element, whose samples are 0, 1, … 9
  for (int step = 0; step < 10; ++step) a += 3 * 0.1 * step;
  EXPECT_NEAR(graph[0], a, 1e-5);
}

TEST_F(CudaDevice, SaysWhichLibrariesItOpened) {
  auto libraries = open_libraries();
  Driver driver(libraries, find_devices(*libraries).at(gpu().index), [&] {
    return open_library([](const std::string& text) { fmt::print("{}\n", text); }, libraries->driver_version);
  });
  fmt::print("{}: {}, {}\n", gpu().id, gpu().name, gpu().driver);
}

struct Trained {
  std::string hash;
  double loss;
};

/// Some steps of an MLP or a CNN on the device.
Trained train(bool cnn, int64_t steps = 20) {
  using Clock = std::chrono::steady_clock;
  auto seconds = [begin = Clock::now()] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  nn::Sequential mlp = {nn::Linear(256), nn::Relu(), nn::Dropout(0.2), nn::Linear(10)};
  nn::Sequential net = {nn::Conv2d(32, 3, {.padding = 1}), nn::Relu(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(10)};
  data::Split split = data::synthetic({1, 28, 28}, 10, 2048, 256);
  nn::Sequential flat = {nn::Flatten(), mlp};
  Trainer trainer(gpu(), classification(cnn ? net : flat), {.batch = 64, .seed = 3});
  trainer.train(split.train, 1);
  double first = seconds();
  double loss = trainer.train(split.train, steps - 1).loss;
  fmt::print("{}: first step after {:.3f} s, {} steps after {:.3f} s\n", cnn ? "cnn" : "mlp", first, steps, seconds());
  return {trainer.state_hash(), loss};
}

class CudaTraining : public CudaDevice, public testing::WithParamInterface<bool> {};

TEST_P(CudaTraining, TwoRunsGiveTheSameBits) { EXPECT_EQ(train(GetParam()).hash, train(GetParam()).hash); }

TEST_P(CudaTraining, GraphsAndSingleLaunchesGiveTheSameBits) {
  std::string graph = train(GetParam()).hash;
  Setting off("TUTTI_CUDA_GRAPH", "0");
  EXPECT_EQ(graph, train(GetParam()).hash);
}

TEST_P(CudaTraining, BranchesSideBySideGiveTheSameBits) {
  std::string one = train(GetParam()).hash;
  Setting several("TUTTI_CUDA_STREAMS", "3");
  EXPECT_EQ(one, train(GetParam()).hash);
}

TEST_P(CudaTraining, RenderedKernelsAndLibrariesAgree) {
  double with = train(GetParam()).loss;
  Setting off("TUTTI_CUDA_LIBRARIES", "0");
  EXPECT_NEAR(with, train(GetParam()).loss, 1e-3 * std::max(1.0, with));
}

INSTANTIATE_TEST_SUITE_P(Models, CudaTraining, testing::Bool(),
                         [](const auto& info) { return info.param ? "cnn" : "mlp"; });

}  // namespace
}  // namespace tutti::cuda
