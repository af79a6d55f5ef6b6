// Time intervals of device work.
#pragma once
#include <chrono>
#include <cstdint>

namespace tutti::sdk {

/// In nanoseconds, on a device clock.
struct Interval {
  uint64_t begin = 0, end = 0;
};

/// The host's clock, for devices that run synchronously.
inline uint64_t host_nanoseconds() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace tutti::sdk
