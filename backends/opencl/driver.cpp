#include "backends/opencl/driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/rounding.h"
#include "core/os/memory.h"
#include "sdk/shortage.h"

namespace tutti::opencl {
namespace {

/// PoCL has a cache keyed by the text's hash; getting its binaries would compile again, for groups of any size.
bool caches_itself(const cl::Platform& platform) {
  const char* kept = std::getenv("POCL_KERNEL_CACHE");
  return is_pocl(platform) && (!kept || std::string(kept) != "0");
}

}  // namespace

Error Driver::failed(const cl::Error& e, const std::string& what) {
  Error error = error_of(e.err(), fmt::format("{}: {}: {}", name_, what, e.what()));
  if (error.code == Code::device_lost) lost_ = error.what();
  return error;
}

void Driver::alive() const {
  if (!lost_.empty())
    throw Error(Code::device_lost, lost_, "start the program again; if the error persists, check the driver");
}

Driver::Driver(const Found& found, const sdk::Host& host) : host_(host), name_(found.info.name), device_(found.device) {
  call("opening the device", [&] {
    traits_ = found.traits;
    caches_itself_ = caches_itself(found.platform);
    sdk::expect_room(sdk::room_to_open);
    context_ = cl::Context(device_);
    queue_ = cl::CommandQueue(context_, device_);
    command_buffers_ = command_buffers_of(found.platform, device_);
  });
}

Driver::~Driver() {
  try {
    queue_.finish();
  } catch (...) {  // a lost device; its memory is freed anyway
  }
  for (auto& [memory, buffer] : pinned_)
    if (!buffer()) os::free_aligned(memory);
}

// ---- memory
// ------------------------------------------------------------------------------------------------------------

sdk::MemoryId Driver::do_allocate(uint64_t bytes, const std::string& what) {
  alive();
  auto none = [&](const std::string& why) {
    return Error(Code::no_memory, fmt::format("opencl: {}: not enough memory for {} of {}: {}", name_, what,
                                              sdk::size_text(bytes), why));
  };
  if (bytes > traits_.max_allocation_bytes)
    throw none(fmt::format("the device's largest allocation is {}", sdk::size_text(traits_.max_allocation_bytes)));
  if (bytes > traits_.memory_bytes - std::min(allocated_, traits_.memory_bytes))
    throw none(fmt::format("{} of the device's {} are already in use", sdk::size_text(allocated_),
                           sdk::size_text(traits_.memory_bytes)));
  Memory m;
  try {
    m.buffer = cl::Buffer(context_, CL_MEM_READ_WRITE, bytes);
    m.bytes = bytes;
    // Drivers allocate lazily; touch the memory now, so that a lack of memory does not fail a training step.
    uint64_t last = bytes < 4 ? 1 : 4;
    cl_uchar zero = 0;
    queue_.enqueueFillBuffer(m.buffer, zero, bytes - last, last);
    queue_.finish();
  } catch (const cl::Error& e) {
    if (code_of(e.err()) == Code::no_memory || e.err() == CL_OUT_OF_RESOURCES)
      throw none(fmt::format("{} ({} already in use)", code_text(e.err()), sdk::size_text(allocated_)));
    throw failed(e, fmt::format("allocating {} for {}", sdk::size_text(bytes), what));
  }
  allocated_ += bytes;
  memories_.emplace(next_memory_, std::move(m));
  return next_memory_++;
}

void Driver::do_release(sdk::MemoryId id) {
  allocated_ -= memories_.at(id).bytes;
  memories_.erase(id);
}

void* Driver::do_allocate_host(uint64_t bytes, const std::string& what) {
  if (traits_.cpu_like) {  // the device reads all host memory equally well
    void* memory = os::allocate_aligned(64, align_up(std::max<uint64_t>(bytes, 1), 64));
    if (!memory)
      throw Error(Code::no_memory,
                  fmt::format("opencl: not enough host memory for {} of {}", what, sdk::size_text(bytes)));
    pinned_.emplace(memory, cl::Buffer());
    return memory;
  }
  return call(fmt::format("allocating {} of pinned host memory for {}", sdk::size_text(bytes), what), [&] {
    bytes = std::max<uint64_t>(bytes, 1);
    cl::Buffer buffer(context_, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes);
    void* memory = queue_.enqueueMapBuffer(buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes);
    pinned_.emplace(memory, buffer);
    return memory;
  });
}

void Driver::do_release_host(void* memory) {
  auto at = pinned_.find(memory);
  cl::Buffer buffer = at->second;
  pinned_.erase(at);
  if (!buffer()) return os::free_aligned(memory);
  call("releasing pinned host memory", [&] { queue_.enqueueUnmapMemObject(buffer, memory), queue_.finish(); });
}

void Driver::do_fill_zero(const sdk::Range& range) {
  Memory& m = memories_.at(range.memory);
  call("fill_zero", [&] {
    // OpenCL requires offset and size to be multiples of the pattern size; wide patterns are much faster.
    auto fill = [&](auto pattern) { queue_.enqueueFillBuffer(m.buffer, pattern, range.offset, range.bytes); };
    uint64_t both = range.offset | range.bytes;
    if (both % 16 == 0)
      fill(cl_ulong2{});
    else if (both % 4 == 0)
      fill(cl_uint{});
    else
      fill(cl_uchar{});
    queue_.finish();
  });
}

void Driver::do_write(const sdk::Range& to, const void* from) {
  Memory& m = memories_.at(to.memory);
  call("write", [&] { queue_.enqueueWriteBuffer(m.buffer, CL_TRUE, to.offset, to.bytes, from); });
}

void Driver::do_read(const sdk::Range& from, void* to) {
  Memory& m = memories_.at(from.memory);
  call("read", [&] { queue_.enqueueReadBuffer(m.buffer, CL_TRUE, from.offset, from.bytes, to); });
}

}  // namespace tutti::opencl
