#include "sdk/trace.h"

#include <fmt/format.h>

#include "core/base/log.h"

namespace tutti::sdk {

Trace dispatch_trace(const Host& host) {
  if (!logging::traced("dispatch")) return {};
  return [host](const std::string& line) { host.log(3, "dispatch", line); };
}

void log_times(const Host& host, uint64_t runs, std::span<const double> seconds,
               const std::function<std::string(size_t)>& name) {
  if (runs == 0) return;
  for (size_t k = 0; k < seconds.size(); ++k)
    host.log(3, "kernels", fmt::format("{:9.1f} us  {}", seconds[k] / static_cast<double>(runs) * 1e6, name(k)));
}

}  // namespace tutti::sdk
