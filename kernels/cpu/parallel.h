// How kernels share work between threads. Results never depend on the number of threads: what is split is chosen by the
// problem alone, who does which part is not.
#pragma once
#include <cstdint>

#include "kernels/cpu/team.h"

namespace tutti::kernels {

/// Element visits below which a second thread costs more than it gives.
constexpr int64_t worth_a_thread = 32768;

/// Calls f(first, last, part) for contiguous parts of [0, items), one per thread; a thread that comes late finds its
/// part done by another. `cost`: element visits in all.
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
