#include "backends/vulkan/matrix_probe.h"

#include <fmt/format.h>

#include <vector>

#include "core/base/dtype.h"
#include "sdk/rendered/cache.h"

namespace tutti::vulkan {
namespace {

constexpr int64_t m = 72, n = 80, k = 40;  // more than one tile, with edges

/// Small integers of both signs.
int64_t number(int64_t i) { return i * 7 % 11 - 5; }

std::vector<std::byte> numbers(int64_t count) {
  std::vector<std::byte> bytes(static_cast<size_t>(count) * 2);
  for (int64_t i = 0; i < count; ++i)
    store_element(DType::f16, bytes.data(), static_cast<size_t>(i), static_cast<double>(number(i)));
  return bytes;
}

/// Buffers and kernels of the probe.
class Probe {
 public:
  explicit Probe(sdk::Driver& driver) : driver_(driver) {}
  ~Probe() {
    try {
      for (sdk::KernelId id : kernels_) driver_.forget_kernel(id);
      for (const sdk::Range& r : memory_) driver_.release(r.memory);
    } catch (const std::exception&) {  // a lost device, reported before
    }
  }
  Probe(const Probe&) = delete;

  size_t add(uint64_t bytes, const void* from = nullptr) {
    memory_.push_back({driver_.allocate(bytes, "the probe of cooperative matrices"), 0, bytes});
    if (from)
      driver_.write(memory_.back(), from);
    else
      driver_.fill_zero(memory_.back());
    return memory_.size() - 1;
  }
  void run(const sdk::RenderedWork& work) {
    std::vector<sdk::Launch> launches;
    for (size_t i = 0; i < work.list.launches.size(); ++i) {
      const sdk::KernelSource& source = work.sources[i];
      std::vector<std::byte> cache;
      kernels_.push_back(driver_.build(source, cache));
      sdk::Launch launch{kernels_.back(), {}, work.list.launches[i].groups, "probe"};
      for (int b : work.list.launches[i].buffers) launch.buffers.push_back(memory_.at(static_cast<size_t>(b)));
      if (!source.numbers.empty())
        launch.buffers.push_back(memory_[add(4 * source.numbers.size(), source.numbers.data())]);
      launches.push_back(std::move(launch));
    }
    sdk::SequenceId sequence = driver_.record(launches, nullptr);
    driver_.wait(driver_.submit(sequence), ~0ull);
    driver_.forget(sequence);
  }
  std::vector<std::byte> read(size_t buffer) {
    std::vector<std::byte> bytes(memory_[buffer].bytes);
    driver_.read(memory_[buffer], bytes.data());
    return bytes;
  }

 private:
  sdk::Driver& driver_;
  std::vector<sdk::Range> memory_;
  std::vector<sdk::KernelId> kernels_;
};

}  // namespace

std::string declines_cooperative_matrices(sdk::Driver& driver) {
  try {
    sdk::RenderedWork work = sdk::rendered(driver.traits(), codegen::matmul(driver.traits(), {DType::f16, m, n, k}));
    if (work.list.launches.at(0).name != "matmul_coop") return "";
    Probe probe(driver);
    probe.add(2 * m * k, numbers(m * k).data());
    probe.add(2 * k * n, numbers(k * n).data());
    size_t y = probe.add(2 * m * n);
    for (uint64_t bytes : work.list.scratch_bytes) probe.add(bytes);
    probe.run(work);
    std::vector<std::byte> got = probe.read(y);
    for (int64_t i = 0; i < m * n; ++i) {
      int64_t sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += number(i / n * k + l) * number(l * n + i % n);
      double value = load_element(DType::f16, got.data(), static_cast<size_t>(i));
      if (value != static_cast<double>(sum))
        return fmt::format("element {} of a product is {}, expected {}", i, value, sum);
    }
    return "";
  } catch (const Error& e) {
    if (e.code == Code::device_lost) throw;
    return e.what();
  }
}

}  // namespace tutti::vulkan
