// Builds kernels, or clears memory, in several threads.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/cpus.h"

namespace tutti::sdk {

/// Calls build(0) … build(count - 1), once each, from as many threads as this process may use (at most 16). Returns the
/// exception of each call, or null.
template <class F>
std::vector<std::exception_ptr> parallel_build(size_t count, F&& build) {
  std::vector<std::exception_ptr> errors(count);
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t k; (k = next++) < count;) {
      try {
        build(k);
      } catch (...) {
        errors[k] = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> others;
  size_t threads = std::min<size_t>({count, static_cast<size_t>(usable_cpus()), 16});
  try {
    for (size_t t = 1; t < threads; ++t) others.emplace_back(work);
  } catch (const std::system_error&) {  // no more threads are granted: those that run do the work
  }
  work();
  others.clear();  // joins
  return errors;
}

}  // namespace tutti::sdk
