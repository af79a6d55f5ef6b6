// Splits work between threads. Results never depend on the number of threads: the split of computations depends only on
// the problem.
#pragma once
#include <cstdint>

#include "kernels/cpu/team.h"

namespace tutti::kernels {

/// Number of element visits below which a second thread does not pay off.
constexpr int64_t worth_a_thread = 32768;

/// Calls f(first, last, part) for contiguous parts of [0, items), one per thread; parts of late threads are run by
/// others. `cost`: total number of element visits.
template <class F>
void share(int64_t items, int64_t cost, int threads, F&& f) {
  if (threads == 1 || items < 2 || cost < 2 * worth_a_thread || in_region()) {
    if (items > 0) f(int64_t{0}, items, 0);
    return;
  }
  auto part = [&](int k) {
    int64_t first = items * k / threads, last = items * (k + 1) / threads;
    if (first < last) f(first, last, k);
  };
  run_parts(
      threads, [](void* call, int k) { (*static_cast<decltype(part)*>(call))(k); }, &part);
}

}  // namespace tutti::kernels
