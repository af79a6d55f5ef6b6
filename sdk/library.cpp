#include "sdk/library.h"

#include <numeric>
#include <utility>

namespace tutti::sdk {

dialect::Work work_of(std::shared_ptr<const void> call, std::string name, size_t buffers, uint64_t scratch) {
  dialect::Work work;
  dialect::Dispatch d;
  d.name = std::move(name);
  if (scratch) {
    work.scratch_bytes = {scratch};
    ++buffers;
  }
  d.buffers.resize(buffers);
  std::iota(d.buffers.begin(), d.buffers.end(), 0);
  d.library = std::move(call);
  work.dispatches.push_back(std::move(d));
  return work;
}

}  // namespace tutti::sdk
