// Times sums over the ranks of a world: mpiexec -n 2 world_sums BYTES… (bench/network.py runs it). Rank 0 prints JSON.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <vector>

#include "core/world/world.h"

namespace {

using Clock = std::chrono::steady_clock;

/// Median seconds of a sum of so many bytes, begun by all ranks at about the same time.
double seconds_of_sum(tutti::World& world, size_t bytes) {
  std::vector<float> values(bytes / sizeof(float), 1);
  std::vector<double> times;
  const int runs = bytes > (size_t{4} << 20) ? 15 : 61;
  for (int k = 0; k < runs; ++k) {
    world.any(false);
    const auto begun = Clock::now();
    world.all_reduce(values);
    times.push_back(std::chrono::duration<double>(Clock::now() - begun).count());
    std::ranges::fill(values, 1);
  }
  std::ranges::nth_element(times, times.begin() + runs / 2);
  return times[static_cast<size_t>(runs / 2)];
}

}  // namespace

int main(int count, char** words) try {
  tutti::World world({});
  std::string all;
  for (int k = 1; k < count; ++k) {
    const size_t bytes = std::strtoull(words[k], nullptr, 10);
    all += fmt::format("{}[{}, {}]", all.empty() ? "" : ", ", bytes, seconds_of_sum(world, bytes));
  }
  if (world.rank() == 0)
    fmt::print("{{\"ranks\": {}, \"library\": \"{}\", \"sums\": [{}]}}\n", world.size(), world.library(), all);
  world.close();
  return 0;
} catch (const std::exception& e) {
  fmt::print(stderr, "world_sums: {}\n", e.what());
  return 1;
}
