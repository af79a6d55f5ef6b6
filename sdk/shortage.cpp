#include "sdk/shortage.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "core/os/memory.h"
#include "sdk/plugin.h"

namespace tutti::sdk {
namespace {

constexpr uint64_t never_short = uint64_t{1} << 20;  // smaller plans are not checked

uint64_t total(const TuttiMemory& m) { return m.state + m.constants + m.arena + m.workspace + m.staging; }

}  // namespace

std::string size_text(uint64_t bytes) {
  return bytes < (1u << 20) ? fmt::format("{} bytes", bytes)
                            : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string shortage(const TuttiMemory& need, std::vector<LargeTensor> tensors, uint64_t left) {
  uint64_t fixed = need.state + need.constants, moving = total(need) - fixed;
  std::string text = fmt::format(
      "this program needs {} bytes: {} state, {} constants, {} arena, {} workspace, {} staging; the largest tensors:",
      total(need), need.state, need.constants, need.arena, need.workspace, need.staging);
  auto shown = static_cast<std::ptrdiff_t>(std::min<size_t>(5, tensors.size()));
  std::partial_sort(tensors.begin(), tensors.begin() + shown, tensors.end(),
                    [](const LargeTensor& a, const LargeTensor& b) { return a.bytes > b.bytes; });
  for (std::ptrdiff_t k = 0; k < shown; ++k)
    text += fmt::format("\n  {:>14} bytes  {}", tensors[static_cast<size_t>(k)].bytes,
                        tensors[static_cast<size_t>(k)].what);
  if (left == unknown_memory || moving == 0) return text;
  if (left <= fixed)
    return text +
           fmt::format("\n{} bytes are free: even the state and constants alone ({} bytes) do not fit", left, fixed);
  double percent = 100 * static_cast<double>(left - fixed) / static_cast<double>(moving);
  if (percent >= 100) return text;
  return text + fmt::format("\n{} bytes are free: about {:.2g} % of this batch would fit", left, percent);
}

void take_host_memory(Device& device) {
  uint64_t total = host_memory_total();
  device.memory_total = total == unknown_memory ? 0 : total;
  device.memory_free = std::min(device.memory_total, host_memory_left());
}

void check_host_room(const TuttiMemory& need, const std::function<std::vector<LargeTensor>()>& tensors) {
  if (total(need) < never_short) return;
  uint64_t left = host_memory_left();
  if (total(need) > left) throw Error(Code::no_memory, shortage(need, tensors(), left));
}

void expect_room(uint64_t bytes) {
  void* at = os::map_pages(bytes, os::page_size());
  if (!at)
    throw Error(Code::no_memory, fmt::format("out of host memory: {} cannot be mapped", size_text(bytes)),
                "use a smaller batch or model, or a higher limit of memory (ulimit -v)");
  os::unmap_pages(at, bytes);
}

}  // namespace tutti::sdk
