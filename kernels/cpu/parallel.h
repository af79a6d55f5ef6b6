// How kernels share work between threads. Results never depend on the number of threads: what is split is chosen by the
// problem alone, who does which part is not.
#pragma once
#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace tutti::kernels {

/// Element visits below which a second thread costs more than it gives.
constexpr int64_t worth_a_thread = 32768;

/// Calls f(first, last, thread) for a contiguous part of [0, items) per thread. `cost`: element visits in all. One
/// thread or all of them: OpenMP runtimes end threads that a smaller team leaves over, and start them again.
template <class F>
void share(int64_t items, int64_t cost, int threads, F&& f) {
  if (threads == 1 || items < 2 || cost < 2 * worth_a_thread) {
    if (items > 0) f(int64_t{0}, items, 0);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    int64_t k = omp_get_thread_num(), n = omp_get_num_threads();
    int64_t first = items * k / n, last = items * (k + 1) / n;
    if (first < last) f(first, last, static_cast<int>(k));
  }
}

}  // namespace tutti::kernels
