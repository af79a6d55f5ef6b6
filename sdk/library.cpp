#include "sdk/library.h"

#include <numeric>
#include <utility>

namespace tutti::sdk {

codegen::LaunchList launch_of(std::shared_ptr<const void> call, std::string name, size_t buffers, uint64_t scratch) {
  codegen::Launch launch{.name = std::move(name), .library = std::move(call)};
  launch.buffers.resize(buffers + (scratch > 0));
  std::iota(launch.buffers.begin(), launch.buffers.end(), 0);
  codegen::LaunchList list{{std::move(launch)}, {}};
  if (scratch) list.scratch_bytes = {scratch};
  return list;
}

}  // namespace tutti::sdk
