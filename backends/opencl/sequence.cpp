// Sequences: prepared once, enqueued at every step, and waited for.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "backends/opencl/driver.h"

namespace tutti::opencl {
namespace {

/// The sizes without trailing dimensions of size 1.
cl::NDRange range_of(const std::array<uint64_t, 3>& n, int dims) {
  if (dims == 1) return cl::NDRange(n[0]);
  return dims == 2 ? cl::NDRange(n[0], n[1]) : cl::NDRange(n[0], n[1], n[2]);
}

}  // namespace

std::shared_ptr<cl::Buffer> Driver::part(const sdk::Range& range) {
  Memory& m = memories_.at(range.memory);
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
    step.copy = true;
    step.from = memories_.at(launch.buffers[0].memory).buffer;
    step.to = memories_.at(launch.buffers[1].memory).buffer;
    step.from_offset = launch.buffers[0].offset;
    step.to_offset = launch.buffers[1].offset;
    step.bytes = launch.buffers[0].bytes;
    return step;
  }
  const Kernel& kernel = kernels_[launch.kernel];
  step.kernel = cl::Kernel(kernel.program, kernel.entry.c_str());
  for (cl_uint k = 0; k < launch.buffers.size(); ++k) {
    step.parts.push_back(part(launch.buffers[k]));
    step.kernel.setArg(k, *step.parts.back());
  }
  std::array<uint64_t, 3> local, global;
  int dims = 1;
  for (int d = 0; d < 3; ++d) {
    local[d] = kernel.local[d];
    global[d] = local[d] * launch.groups[d];
    if (global[d] > 1) dims = d + 1;
  }
  step.local = range_of(local, dims);
  step.global = range_of(global, dims);
  return step;
}

sdk::SequenceId Driver::do_record(std::span<const sdk::Launch> launches, const sdk::Upload* upload) {
  return add(launches, upload, false);
}

std::optional<sdk::SequenceId> Driver::do_record_timed(std::span<const sdk::Launch> launches,
                                                       const sdk::Upload* upload) {
  return add(launches, upload, true);
}

std::vector<sdk::Interval> Driver::do_times(sdk::SequenceId sequence) {
  return call("reading times", [&] {
    std::vector<sdk::Interval> all;
    for (const cl::Event& e : sequences_.at(sequence).events)
      all.push_back({e.getProfilingInfo<CL_PROFILING_COMMAND_START>(), e.getProfilingInfo<CL_PROFILING_COMMAND_END>()});
    return all;
  });
}

sdk::SequenceId Driver::add(std::span<const sdk::Launch> launches, const sdk::Upload* upload, bool timed) {
  Sequence s;
  s.timed = timed;
  bool after_copy = true;
  for (const sdk::Launch& launch : launches) {
    Step step = call(fmt::format("preparing '{}'", launch.name), [&] { return prepare(launch); });
    if (step.copy || after_copy) s.runs.emplace_back();
    after_copy = step.copy;
    s.runs.back().steps.push_back(std::move(step));
  }
  if (!timed)
    for (Run& run : s.runs) record_run(run);
  if (upload) {
    s.to = memories_.at(upload->to.memory).buffer;
    s.upload = upload->from;
    s.to_offset = upload->to.offset;
    s.bytes = upload->to.bytes;
  }
  s.span = span_text(launches);
  sequences_.emplace(next_sequence_, std::move(s));
  return next_sequence_++;
}

void Driver::record_run(Run& run) {
  if (!command_buffers_ || run.steps.size() < 2) return;
  try {
    auto recorded = std::make_unique<CommandBuffer>(command_buffers_, queue_);
    for (const Step& step : run.steps) recorded->add(step.kernel, step.global, step.local);
    recorded->finish();
    run.recorded = std::move(recorded);
  } catch (const cl::Error& e) {
    host_.log(2, "opencl",
              fmt::format("{}: launches cannot be recorded, so they are enqueued one by one: {}: {}", name_, e.what(),
                          code_text(e.err())));
    command_buffers_ = nullptr;
  }
}

size_t Driver::recorded(sdk::SequenceId sequence) const {
  size_t count = 0;
  for (const Run& run : sequences_.at(sequence).runs) count += run.recorded ? run.steps.size() : 0;
  return count;
}

void Driver::do_forget(sdk::SequenceId sequence) {
  sequences_.erase(sequence);
  for (auto& [id, m] : memories_) std::erase_if(m.parts, [](const auto& p) { return p.second.expired(); });
}

void Driver::enqueue(const cl::CommandQueue& queue, const Step& step, cl::Event* event) {
  if (step.copy)
    queue.enqueueCopyBuffer(step.from, step.to, step.from_offset, step.to_offset, step.bytes, nullptr, event);
  else
    queue.enqueueNDRangeKernel(step.kernel, cl::NullRange, step.global, step.local, nullptr, event);
}

void Driver::enqueue_upload(const cl::CommandQueue& queue, const Sequence& s, cl::Event* event) {
  queue.enqueueWriteBuffer(s.to, CL_FALSE, s.to_offset, s.bytes, s.upload, nullptr, event);
}

void Driver::enqueue_timed(Sequence& s, cl::Event& last, const std::string*& doing) {
  queue_.finish();
  if (!timing_()) timing_ = cl::CommandQueue(context_, device_, CL_QUEUE_PROFILING_ENABLE);
  s.events.clear();
  if (s.bytes > 0) enqueue_upload(timing_, s, &s.events.emplace_back());
  for (const Run& run : s.runs)
    for (const Step& step : run.steps) {
      doing = &step.name;
      enqueue(timing_, step, &s.events.emplace_back());
    }
  doing = nullptr;
  if (s.events.empty())
    timing_.enqueueMarkerWithWaitList(nullptr, &last);
  else
    last = s.events.back();
  timing_.finish();
}

void Driver::enqueue(Run& run, cl::Event* event, const std::string*& doing) {
  if (run.recorded && run.recorded->free()) {
    try {
      return run.recorded->enqueue(event);
    } catch (const cl::Error& e) {
      if (is_loss(e.err())) throw;
      host_.log(2, "opencl",
                fmt::format("{}: recorded launches cannot be submitted, so they are enqueued one by one: {}: {}", name_,
                            e.what(), code_text(e.err())));
      run.recorded = nullptr;
    }
  }
  for (const Step& step : run.steps) {
    doing = &step.name;
    enqueue(step, &step == &run.steps.back() ? event : nullptr);
  }
  doing = nullptr;
}

uint64_t Driver::do_submit(sdk::SequenceId sequence) {
  alive();
  Sequence& s = sequences_.at(sequence);
  // Limits the number of pending events for callers that never wait. A failed event stays for the next wait.
  while (flights_.size() > 64 && flights_.front().last.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>() == CL_COMPLETE) {
    land(flights_.front());
    flights_.pop_front();
  }
  Flight flight{tickets_ + 1, {}, s.span};
  const std::string* doing = nullptr;
  try {
    if (s.timed)
      enqueue_timed(s, flight.last, doing);
    else if (s.bytes > 0)
      enqueue_upload(queue_, s, s.runs.empty() ? &flight.last : nullptr);
    else if (s.runs.empty())
      queue_.enqueueMarkerWithWaitList(nullptr, &flight.last);
    if (!s.timed)
      for (Run& run : s.runs) enqueue(run, &run == &s.runs.back() ? &flight.last : nullptr, doing);
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
      "opencl: {}: {} failed on the device: {} (set TUTTI_TRACE=kernels to run the launches one by one and name the "
      "one that failed)",
      name_, flight.span, code_text(status));
  alive();
}

void Driver::do_wait(uint64_t ticket, uint64_t timeout_ns) {
  using Clock = std::chrono::steady_clock;
  alive();
  // The queue is in-order, so the last event covers all earlier ones.
  auto end = std::find_if(flights_.begin(), flights_.end(), [&](const Flight& f) { return f.ticket > ticket; });
  if (end == flights_.begin()) return;
  const cl::Event& last = std::prev(end)->last;
  call("waiting", [&] {
    if (timeout_ns == ~uint64_t{0}) {
      try {
        last.wait();
      } catch (const cl::Error& e) {
        if (e.err() != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) throw;  // land names the launches
      }
    } else {
      // OpenCL has no wait with timeout. Polls a few times, then with short sleeps, which leave the cores to CPU
      // devices.
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
