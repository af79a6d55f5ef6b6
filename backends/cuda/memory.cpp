// Device and host memory, and synchronous copies.
#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/driver.h"
#include "sdk/shortage.h"

namespace tutti::cuda {

sdk::MemoryId Driver::do_allocate(uint64_t bytes, const std::string& what) {
  Current in(*context_);
  CUdeviceptr at = 0;
  CUresult result = cuda().cuMemAlloc(&at, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t free = 0, total = 0;
    cuda().cuMemGetInfo(&free, &total);
    throw Error(Code::no_memory,
                fmt::format("cuda: {}: not enough memory for {} of {}: {} of {} are free, {} are used by this session",
                            name_, what, sdk::size_text(bytes), sdk::size_text(free), sdk::size_text(total),
                            sdk::size_text(allocated_)));
  }
  if (result != CUDA_SUCCESS) fail(result, fmt::format("allocating {} for {}", sdk::size_text(bytes), what));
  allocated_ += bytes;
  memories_.emplace(next_memory_, Memory{at, bytes});
  return next_memory_++;
}

void Driver::do_release(sdk::MemoryId id) {
  Memory m = memories_.at(id);
  memories_.erase(id);
  allocated_ -= m.bytes;
  Current in(*context_);
  check(cuda().cuMemFree(m.at), "cuMemFree");
}

void* Driver::do_allocate_host(uint64_t bytes, const std::string& what) {
  Current in(*context_);
  void* at = nullptr;
  CUresult result = cuda().cuMemHostAlloc(&at, std::max<uint64_t>(bytes, 1), CU_MEMHOSTALLOC_PORTABLE);
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    throw Error(Code::no_memory,
                fmt::format("cuda: not enough pinned host memory for {} of {}", what, sdk::size_text(bytes)),
                "use a smaller batch, or raise the limit on locked memory (ulimit -l)");
  if (result != CUDA_SUCCESS) fail(result, fmt::format("allocating pinned host memory for {}", what));
  pinned_.insert(at);
  return at;
}

void Driver::do_release_host(void* memory) {
  pinned_.erase(memory);
  Current in(*context_);
  check(cuda().cuMemFreeHost(memory), "cuMemFreeHost");
}

void Driver::do_fill_zero(const sdk::Range& range) {
  Current in(*context_);
  check(cuda().cuMemsetD8Async(address(range), 0, range.bytes, stream_), "fill_zero");
  check(cuda().cuStreamSynchronize(stream_), "fill_zero");
}

void Driver::do_write(const sdk::Range& to, const void* from) {
  Current in(*context_);
  check(cuda().cuMemcpyHtoDAsync(address(to), from, to.bytes, stream_), "write");
  check(cuda().cuStreamSynchronize(stream_), "write");
}

void Driver::do_read(const sdk::Range& from, void* to) {
  Current in(*context_);
  check(cuda().cuMemcpyDtoHAsync(to, address(from), from.bytes, stream_), "read");
  check(cuda().cuStreamSynchronize(stream_), "read");
}

}  // namespace tutti::cuda
