// Device and host memory, and copies that are waited for.
#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/driver.h"
#include "sdk/shortage.h"

namespace tutti::cuda {

CUdeviceptr Driver::device_memory(uint64_t bytes, const std::string& what) {
  if (bytes == 0) throw invalid(fmt::format("cuda: an allocation of 0 bytes for {}", what));
  Current in(*context_);
  CUdeviceptr at = 0;
  CUresult result = cuda().cuMemAlloc(&at, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t free = 0, total = 0;
    cuda().cuMemGetInfo(&free, &total);
    throw Error(
        Code::no_memory,
        fmt::format("cuda: {}: no memory for {} of {}: {} of {} are free, {} are this session's", name_, what,
                    sdk::size_text(bytes), sdk::size_text(free), sdk::size_text(total), sdk::size_text(allocated_)));
  }
  if (result != CUDA_SUCCESS) fail(result, fmt::format("allocating {} for {}", sdk::size_text(bytes), what));
  allocated_ += bytes;
  return at;
}

sdk::MemoryId Driver::allocate(uint64_t bytes, const std::string& what) {
  Memory made{device_memory(bytes, what), bytes};
  memories_.emplace(next_memory_, made);
  return next_memory_++;
}

Driver::Memory& Driver::memory(sdk::MemoryId id, const char* call) {
  auto at = memories_.find(id);
  if (at == memories_.end()) throw invalid(fmt::format("cuda: {}: there is no memory {}", call, id));
  return at->second;
}

void Driver::release(sdk::MemoryId id) {
  Memory m = memory(id, "release");
  memories_.erase(id);
  allocated_ -= m.bytes;
  Current in(*context_);
  check(cuda().cuMemFree(m.at), "cuMemFree");
}

void* Driver::allocate_host(uint64_t bytes, const std::string& what) {
  Current in(*context_);
  void* at = nullptr;
  CUresult result = cuda().cuMemHostAlloc(&at, std::max<uint64_t>(bytes, 1), CU_MEMHOSTALLOC_PORTABLE);
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    throw Error(Code::no_memory, fmt::format("cuda: no pinned host memory for {} of {}", what, sdk::size_text(bytes)),
                "use a smaller batch, or raise the limit on locked memory");
  if (result != CUDA_SUCCESS) fail(result, fmt::format("allocating pinned host memory for {}", what));
  pinned_.insert(at);
  return at;
}

void Driver::release_host(void* memory) {
  if (pinned_.erase(memory) == 0) throw invalid("cuda: release_host of memory that allocate_host did not give");
  Current in(*context_);
  check(cuda().cuMemFreeHost(memory), "cuMemFreeHost");
}

CUdeviceptr Driver::checked(const sdk::Range& range, const std::string& what) {
  const Memory& m = memory(range.memory, what.c_str());
  if (range.bytes > m.bytes || range.offset > m.bytes - range.bytes)
    throw invalid(fmt::format("cuda: {}: bytes {} to {} of a memory of {}", what, range.offset,
                              range.offset + range.bytes, m.bytes));
  return m.at + range.offset;
}

void Driver::fill_zero(const sdk::Range& range) {
  CUdeviceptr at = checked(range, "fill_zero");
  if (range.bytes == 0) return;
  Current in(*context_);
  check(cuda().cuMemsetD8Async(at, 0, range.bytes, stream_), "fill_zero");
  check(cuda().cuStreamSynchronize(stream_), "fill_zero");
}

void Driver::write(const sdk::Range& to, const void* from) {
  CUdeviceptr at = checked(to, "write");
  if (to.bytes == 0) return;
  Current in(*context_);
  check(cuda().cuMemcpyHtoDAsync(at, from, to.bytes, stream_), "write");
  check(cuda().cuStreamSynchronize(stream_), "write");
}

void Driver::read(const sdk::Range& from, void* to) {
  CUdeviceptr at = checked(from, "read");
  if (from.bytes == 0) return;
  Current in(*context_);
  check(cuda().cuMemcpyDtoHAsync(to, at, from.bytes, stream_), "read");
  check(cuda().cuStreamSynchronize(stream_), "read");
}

}  // namespace tutti::cuda
