#include "backends/opencl/driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace tutti::opencl {
namespace {

std::string size_text(uint64_t bytes) {
  return bytes < (1u << 20) ? fmt::format("{} bytes", bytes)
                            : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

/// The sizes without the trailing dimensions that are 1.
cl::NDRange range_of(const std::array<uint64_t, 3>& n, int dims) {
  if (dims == 1) return cl::NDRange(n[0]);
  return dims == 2 ? cl::NDRange(n[0], n[1]) : cl::NDRange(n[0], n[1], n[2]);
}

}  // namespace

template <class F>
auto Driver::call(const std::string& what, F&& body) -> decltype(body()) {
  alive();
  try {
    return body();
  } catch (const cl::Error& e) {
    throw failed(e, what);
  }
}

Error Driver::failed(const cl::Error& e, const std::string& what) {
  Error error = error_of(e.err(), fmt::format("{}: {}: {}", name_, what, e.what()));
  if (error.code == Code::device_lost) lost_ = error.what();
  return error;
}

void Driver::alive() const {
  if (!lost_.empty())
    throw Error(Code::device_lost, lost_, "start the program again; if it persists, look at the driver");
}

Driver::Driver(const Found& found, const sdk::Host& host) : host_(host), name_(found.info.name), device_(found.device) {
  call("opening the device", [&] {
    traits_ = traits_of(found.platform, device_);
    correctly_rounded_ = (device_.getInfo<CL_DEVICE_SINGLE_FP_CONFIG>() & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    context_ = cl::Context(device_);
    queue_ = cl::CommandQueue(context_, device_);
  });
}

Driver::~Driver() {
  try {
    queue_.finish();
  } catch (...) {  // a lost device; what it held is freed all the same
  }
  for (auto& [memory, buffer] : pinned_)
    if (!buffer()) std::free(memory);
}

// ---- memory
// ------------------------------------------------------------------------------------------------------------

sdk::MemoryId Driver::allocate(uint64_t bytes, const std::string& what) {
  alive();
  auto none = [&](const std::string& why) {
    return Error(Code::no_memory,
                 fmt::format("opencl: {}: no memory for {} of {}: {}", name_, what, size_text(bytes), why),
                 "use a smaller batch or model, or another device");
  };
  if (bytes == 0) throw invalid(fmt::format("opencl: an allocation of 0 bytes for {}", what));
  if (bytes > traits_.max_allocation_bytes)
    throw none(fmt::format("the device's largest allocation is {}", size_text(traits_.max_allocation_bytes)));
  if (bytes > traits_.memory_bytes - std::min(allocated_, traits_.memory_bytes))
    throw none(fmt::format("{} of the device's {} are taken", size_text(allocated_), size_text(traits_.memory_bytes)));
  Memory m;
  try {
    m.buffer = cl::Buffer(context_, CL_MEM_READ_WRITE, bytes);
    m.bytes = bytes;
    // Drivers allocate late; the first use must not be where a training step fails.
    uint64_t last = bytes < 4 ? 1 : 4;
    cl_uchar zero = 0;
    queue_.enqueueFillBuffer(m.buffer, zero, bytes - last, last);
    queue_.finish();
  } catch (const cl::Error& e) {
    if (code_of(e.err()) == Code::no_memory || e.err() == CL_OUT_OF_RESOURCES)
      throw none(fmt::format("{} ({} taken)", code_text(e.err()), size_text(allocated_)));
    throw failed(e, fmt::format("allocating {} for {}", size_text(bytes), what));
  }
  allocated_ += bytes;
  memories_.emplace(next_memory_, std::move(m));
  return next_memory_++;
}

void Driver::release(sdk::MemoryId id) {
  allocated_ -= memory(id, "release").bytes;
  memories_.erase(id);
}

void* Driver::allocate_host(uint64_t bytes, const std::string& what) {
  if (traits_.cpu_like) {  // the device reads any memory equally well
    void* memory = std::aligned_alloc(64, (std::max<uint64_t>(bytes, 1) + 63) / 64 * 64);
    if (!memory)
      throw Error(Code::no_memory, fmt::format("opencl: no host memory for {} of {}", what, size_text(bytes)));
    pinned_.emplace(memory, cl::Buffer());
    return memory;
  }
  return call(fmt::format("allocating {} of pinned host memory for {}", size_text(bytes), what), [&] {
    bytes = std::max<uint64_t>(bytes, 1);
    cl::Buffer buffer(context_, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes);
    void* memory = queue_.enqueueMapBuffer(buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes);
    pinned_.emplace(memory, buffer);
    return memory;
  });
}

void Driver::release_host(void* memory) {
  auto at = pinned_.find(memory);
  if (at == pinned_.end()) throw invalid("opencl: release_host of memory that allocate_host did not give");
  cl::Buffer buffer = at->second;
  pinned_.erase(at);
  if (!buffer()) return std::free(memory);
  call("releasing pinned host memory", [&] { queue_.enqueueUnmapMemObject(buffer, memory), queue_.finish(); });
}

Driver::Memory& Driver::memory(sdk::MemoryId id, const char* call) {
  auto at = memories_.find(id);
  if (at == memories_.end()) throw invalid(fmt::format("opencl: {}: there is no memory {}", call, id));
  return at->second;
}

Driver::Memory& Driver::checked(const sdk::Range& range, const std::string& what) {
  Memory& m = memory(range.memory, what.c_str());
  if (range.bytes > m.bytes || range.offset > m.bytes - range.bytes)
    throw invalid(fmt::format("opencl: {}: bytes {} to {} of a memory of {}", what, range.offset,
                              range.offset + range.bytes, m.bytes));
  return m;
}

void Driver::fill_zero(const sdk::Range& range) {
  Memory& m = checked(range, "fill_zero");
  if (range.bytes == 0) return;
  call("fill_zero", [&] {
    // OpenCL wants offset and size to be multiples of the pattern; wide patterns are much faster.
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

void Driver::write(const sdk::Range& to, const void* from) {
  Memory& m = checked(to, "write");
  if (to.bytes > 0) call("write", [&] { queue_.enqueueWriteBuffer(m.buffer, CL_TRUE, to.offset, to.bytes, from); });
}

void Driver::read(const sdk::Range& from, void* to) {
  Memory& m = checked(from, "read");
  if (from.bytes > 0) call("read", [&] { queue_.enqueueReadBuffer(m.buffer, CL_TRUE, from.offset, from.bytes, to); });
}

// ---- sequences
// ---------------------------------------------------------------------------------------------------------

std::shared_ptr<cl::Buffer> Driver::part(const sdk::Range& range, const std::string& what) {
  Memory& m = checked(range, what);
  if (range.bytes == 0) throw invalid(fmt::format("opencl: {}: an empty buffer", what));
  if (range.offset % traits_.alignment != 0)
    throw invalid(fmt::format("opencl: {}: offset {} is no multiple of {}", what, range.offset, traits_.alignment));
  std::weak_ptr<cl::Buffer>& kept = m.parts[{range.offset, range.bytes}];
  if (auto held = kept.lock()) return held;
  cl_buffer_region region{range.offset, range.bytes};
  bool whole = range.offset == 0 && range.bytes == m.bytes;
  auto fresh = std::make_shared<cl::Buffer>(
      whole ? m.buffer : m.buffer.createSubBuffer(CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region));
  kept = fresh;
  return fresh;
}

Driver::Step Driver::prepare(const sdk::Launch& launch) {
  Step step;
  step.name = launch.name;
  if (launch.copy) {
    if (launch.buffers.size() != 2 || launch.buffers[0].bytes != launch.buffers[1].bytes)
      throw invalid(fmt::format("opencl: the copy '{}' needs two ranges of one size", launch.name));
    step.copy = true;
    step.from = checked(launch.buffers[0], launch.name).buffer;
    step.to = checked(launch.buffers[1], launch.name).buffer;
    step.from_offset = launch.buffers[0].offset;
    step.to_offset = launch.buffers[1].offset;
    step.bytes = launch.buffers[0].bytes;
    return step;
  }
  if (launch.kernel >= kernels_.size())
    throw invalid(fmt::format("opencl: '{}': there is no kernel {}", launch.name, launch.kernel));
  const Kernel& kernel = kernels_[launch.kernel];
  if (launch.buffers.size() != kernel.buffers)
    throw invalid(fmt::format("opencl: '{}' gives {} buffers to a kernel of {}", launch.name, launch.buffers.size(),
                              kernel.buffers));
  step.kernel = cl::Kernel(kernel.program, kernel.entry.c_str());
  for (cl_uint k = 0; k < launch.buffers.size(); ++k) {
    step.parts.push_back(part(launch.buffers[k], launch.name));
    step.kernel.setArg(k, *step.parts.back());
  }
  std::array<uint64_t, 3> local, global;
  int dims = 1;
  for (int d = 0; d < 3; ++d) {
    if (launch.groups[d] == 0) throw invalid(fmt::format("opencl: '{}' has no groups", launch.name));
    local[d] = kernel.local[d];
    global[d] = local[d] * launch.groups[d];
    if (global[d] > 1) dims = d + 1;
  }
  step.local = range_of(local, dims);
  step.global = range_of(global, dims);
  return step;
}

sdk::SequenceId Driver::record(std::span<const sdk::Launch> launches, const sdk::Upload* upload) {
  Sequence s;
  s.steps.reserve(launches.size());
  for (const sdk::Launch& launch : launches)
    s.steps.push_back(call(fmt::format("preparing '{}'", launch.name), [&] { return prepare(launch); }));
  if (upload) {
    s.to = checked(upload->to, "upload").buffer;
    s.upload = upload->from;
    s.to_offset = upload->to.offset;
    s.bytes = upload->to.bytes;
  }
  if (launches.empty())
    s.span = "a sequence without launches";
  else if (launches.size() == 1)
    s.span = fmt::format("'{}'", launches[0].name);
  else
    s.span = fmt::format("one of {} launches from '{}' to '{}'", launches.size(), launches.front().name,
                         launches.back().name);
  sequences_.emplace(next_sequence_, std::move(s));
  return next_sequence_++;
}

void Driver::forget(sdk::SequenceId sequence) {
  if (sequences_.erase(sequence) == 0) throw invalid(fmt::format("opencl: there is no sequence {}", sequence));
  for (auto& [id, m] : memories_) std::erase_if(m.parts, [](const auto& p) { return p.second.expired(); });
}

void Driver::enqueue(const Step& step, cl::Event* event) {
  if (step.copy)
    queue_.enqueueCopyBuffer(step.from, step.to, step.from_offset, step.to_offset, step.bytes, nullptr, event);
  else
    queue_.enqueueNDRangeKernel(step.kernel, cl::NullRange, step.global, step.local, nullptr, event);
}

uint64_t Driver::submit(sdk::SequenceId sequence) {
  alive();
  auto at = sequences_.find(sequence);
  if (at == sequences_.end()) throw invalid(fmt::format("opencl: there is no sequence {}", sequence));
  const Sequence& s = at->second;
  // Whoever never waits must not pile up events; one that failed stays, for the wait to come.
  while (flights_.size() > 64 && flights_.front().last.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>() == CL_COMPLETE) {
    land(flights_.front());
    flights_.pop_front();
  }
  Flight flight{tickets_ + 1, {}, s.span};
  const std::string* doing = nullptr;
  try {
    if (s.bytes > 0)
      queue_.enqueueWriteBuffer(s.to, CL_FALSE, s.to_offset, s.bytes, s.upload, nullptr,
                                s.steps.empty() ? &flight.last : nullptr);
    else if (s.steps.empty())
      queue_.enqueueMarkerWithWaitList(nullptr, &flight.last);
    for (const Step& step : s.steps) {
      doing = &step.name;
      enqueue(step, &step == &s.steps.back() ? &flight.last : nullptr);
    }
    doing = nullptr;
    queue_.flush();
  } catch (const cl::Error& e) {
    throw failed(e, doing ? fmt::format("launching '{}'", *doing) : "submitting");
  }
  flights_.push_back(std::move(flight));
  return ++tickets_;
}

void Driver::land(const Flight& flight) {
  cl_int status = flight.last.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>();
  if (status >= 0) return;
  lost_ = fmt::format(
      "opencl: {}: {} failed on the device: {} (with TUTTI_TRACE=kernels launches run one by one, and this names the "
      "one that failed)",
      name_, flight.span, code_text(status));
  alive();
}

void Driver::wait(uint64_t ticket, uint64_t timeout_ns) {
  using Clock = std::chrono::steady_clock;
  if (ticket > tickets_) throw invalid(fmt::format("opencl: there is no ticket {}", ticket));
  alive();
  // The queue is in order: the last event stands for all before it.
  auto end = std::find_if(flights_.begin(), flights_.end(), [&](const Flight& f) { return f.ticket > ticket; });
  if (end == flights_.begin()) return;
  const cl::Event& last = std::prev(end)->last;
  call("waiting", [&] {
    if (timeout_ns == ~uint64_t{0}) {
      try {
        last.wait();
      } catch (const cl::Error& e) {
        if (e.err() != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) throw;  // land says which launches
      }
    } else {
      // OpenCL has no timed wait. A few looks at once, then short sleeps, which leave the cores to a device that is a
      // CPU.
      auto start = Clock::now();
      for (int looks = 0; last.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>() > CL_COMPLETE; ++looks) {
        auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
        if (static_cast<uint64_t>(passed) >= timeout_ns)
          throw Error(Code::timeout, fmt::format("opencl: {}: {} did not finish within {:.3f} s", name_,
                                                 std::prev(end)->span, static_cast<double>(timeout_ns) / 1e9));
        if (looks < 8)
          std::this_thread::yield();
        else
          std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
    while (!flights_.empty() && flights_.front().ticket <= ticket) {
      Flight flight = std::move(flights_.front());
      flights_.pop_front();
      land(flight);
    }
  });
}

}  // namespace tutti::opencl
