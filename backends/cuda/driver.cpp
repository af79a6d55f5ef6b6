// Opening, recording, submitting, waiting.
#include "backends/cuda/driver.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "backends/cuda/library_in_context.h"
#include "core/base/text.h"

namespace tutti::cuda {
namespace {

/// TUTTI_CUDA_STREAMS. Throws Error(invalid).
size_t wanted_streams() {
  const char* text = std::getenv("TUTTI_CUDA_STREAMS");
  if (!text) return 1;
  size_t n = parse_number<size_t>(text).value_or(0);
  if (n < 1 || n > 16)
    throw invalid(fmt::format("cuda: invalid value TUTTI_CUDA_STREAMS={}", text), "use a number from 1 to 16");
  return n;
}

}  // namespace

Driver::Driver(std::shared_ptr<const Libraries> libraries, const Found& found, const MakeLibrary& library, Log log)
    : libraries_(std::move(libraries)),
      name_(found.info.name),
      architecture_(found.architecture),
      context_(libraries_->context(found.handle, found.info.name)),
      log_(std::move(log)) {
  const char* graphs = std::getenv("TUTTI_CUDA_GRAPH");
  graphs_ = !graphs || std::string(graphs) != "0";
  size_t streams = wanted_streams();
  traits_ = traits_of(*libraries_, found);
  Current in(*context_);
  try {
    check(cuda().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    check(cuda().cuStreamCreate(&copies_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    while (graphs_ && branches_.size() + 1 < streams) {
      branches_.push_back(nullptr);
      check(cuda().cuStreamCreate(&branches_.back(), CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    }
    if (auto made = library ? library() : nullptr)
      library_ = std::make_unique<LibraryInContext>(context_, std::move(made));
    traits_.library = library_.get();
  } catch (...) {
    close();
    throw;
  }
}

void Driver::close() noexcept {
  for (CUstream s : branches_)
    if (s) cuda().cuStreamDestroy(s);
  for (CUstream s : {sums_, copies_, stream_})
    if (s) cuda().cuStreamDestroy(s);
}

Driver::~Driver() {
  Current in(*context_, std::nothrow);  // results are ignored, because on a lost device every call fails
  end_group("the session has ended");   // other ranks may be gone, and work would wait for them
  cuda().cuStreamSynchronize(copies_);
  cuda().cuStreamSynchronize(stream_);
  for (auto& [id, sequence] : sequences_) destroy(sequence);
  sequences_.clear();
  library_.reset();
  for (Flight& f : flights_) cuda().cuEventDestroy(f.done);
  for (CUevent e : free_events_) cuda().cuEventDestroy(e);
  for (Kernel& k : kernels_)
    if (k.module) cuda().cuModuleUnload(k.module);
  for (auto& [id, m] : memories_) cuda().cuMemFree(m.at);
  for (void* memory : pinned_) cuda().cuMemFreeHost(memory);
  close();
}

CUevent Driver::event() {
  if (!free_events_.empty()) {
    CUevent e = free_events_.back();
    free_events_.pop_back();
    return e;
  }
  CUevent e = nullptr;
  check(cuda().cuEventCreate(&e, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  return e;
}

// ---- sequences

Driver::Step Driver::prepare(const sdk::Launch& launch) {
  Step s;
  s.name = launch.name;
  for (const sdk::Range& range : launch.buffers) s.arguments.push_back(address(range));
  auto writes = [&](auto&& written) {
    for (size_t i = 0; i < s.arguments.size(); ++i)
      s.accesses.push_back({s.arguments[i], s.arguments[i] + launch.buffers[i].bytes, written(i)});
  };
  if (launch.copy) {
    s.bytes = launch.buffers[0].bytes;
    writes([](size_t i) { return i == 1; });
    return s;
  }
  if (launch.library) {
    s.call = std::static_pointer_cast<const Call>(launch.library);
    writes([&](size_t i) { return i >= s.call->inputs(); });
    return s;
  }
  const Kernel& kernel = kernels_[launch.kernel];
  s.function = kernel.function;
  s.groups = launch.groups;
  s.local = kernel.local;
  writes([&](size_t i) { return kernel.written[i]; });
  return s;
}

void Driver::enqueue(const Step& step, CUstream stream) {
  if (step.call) return step.call->run(stream, step.arguments);
  CUresult result = CUDA_SUCCESS;
  if (step.function) {
    std::vector<void*> arguments;
    for (const CUdeviceptr& a : step.arguments) arguments.push_back(const_cast<CUdeviceptr*>(&a));
    result = cuda().cuLaunchKernel(step.function, step.groups[0], step.groups[1], step.groups[2], step.local[0],
                                   step.local[1], step.local[2], 0, stream, arguments.data(), nullptr);
  } else {
    result = cuda().cuMemcpyDtoDAsync(step.arguments[1], step.arguments[0], step.bytes, stream);
  }
  if (result != CUDA_SUCCESS) fail(result, fmt::format("launching '{}'", step.name));
}

sdk::SequenceId Driver::do_record(std::span<const sdk::Launch> launches, const sdk::Upload* upload) {
  return add(launches, upload, false);
}

std::optional<sdk::SequenceId> Driver::do_record_timed(std::span<const sdk::Launch> launches,
                                                       const sdk::Upload* upload) {
  return add(launches, upload, true);
}

std::vector<sdk::Interval> Driver::do_times(sdk::SequenceId sequence) {
  Current in(*context_);
  const std::vector<CUevent>& moments = sequences_.at(sequence).moments;
  std::vector<uint64_t> at(moments.size());
  for (size_t k = 1; k < moments.size(); ++k) {
    float milliseconds = 0;
    check(cuda().event_elapsed(&milliseconds, moments[0], moments[k]), "cuEventElapsedTime");
    at[k] = static_cast<uint64_t>(1e6 * static_cast<double>(milliseconds));
  }
  std::vector<sdk::Interval> all;
  for (size_t k = 1; k < at.size(); ++k) all.push_back({at[k - 1], at[k]});
  return all;
}

sdk::SequenceId Driver::add(std::span<const sdk::Launch> launches, const sdk::Upload* upload, bool timed) {
  Current in(*context_);
  Sequence s;
  s.span = span_text(launches);
  try {
    if (upload) {
      Step onward;
      onward.name = "upload";
      onward.bytes = s.bytes = upload->to.bytes;
      CUdeviceptr to = address(upload->to);
      s.upload = upload->from;
      s.upload_buffer = address(upload->buffer);
      s.uploaded = event();
      s.taken = event();
      onward.arguments = {s.upload_buffer, to};
      onward.accesses = {{s.upload_buffer, s.upload_buffer + s.bytes, false}, {to, to + s.bytes, true}};
      s.steps.push_back(std::move(onward));
    }
    for (const sdk::Launch& launch : launches) s.steps.push_back(prepare(launch));
    if (timed) {
      s.moments.resize(s.steps.size() + 1);
      for (CUevent& e : s.moments) check(cuda().cuEventCreate(&e, CU_EVENT_DEFAULT), "cuEventCreate");
    } else if (graphs_ && s.steps.size() > 1) {
      s.graph = captured(s);
    }
  } catch (...) {
    destroy(s);
    throw;
  }
  sequences_.emplace(next_sequence_, std::move(s));
  return next_sequence_++;
}

void Driver::destroy(Sequence& s) {
  if (s.graph) cuda().cuGraphExecDestroy(s.graph);
  for (CUevent e : {s.uploaded, s.taken})
    if (e) cuda().cuEventDestroy(e);
  for (CUevent e : s.moments)
    if (e) cuda().cuEventDestroy(e);
}

void Driver::do_forget(sdk::SequenceId sequence) {
  auto at = sequences_.find(sequence);
  Current in(*context_);
  destroy(at->second);
  sequences_.erase(at);
}

uint64_t Driver::do_submit(sdk::SequenceId sequence) {
  Current in(*context_);
  if (group_) group_->expect_alive();
  const Sequence& s = sequences_.at(sequence);
  // Limits the number of pending events for callers that never wait. A failed event stays for the next wait.
  while (flights_.size() > 64 && cuda().cuEventQuery(flights_.front().done) == CUDA_SUCCESS) {
    free_events_.push_back(flights_.front().done);
    flights_.pop_front();
  }
  if (s.bytes) {
    // Waiting for an event that was never recorded is a no-op.
    check(cuda().cuStreamWaitEvent(copies_, s.taken, 0), "uploading");
    check(cuda().cuMemcpyHtoDAsync(s.upload_buffer, s.upload, s.bytes, copies_), "uploading");
    check(cuda().cuEventRecord(s.uploaded, copies_), "uploading");
    check(cuda().cuStreamWaitEvent(stream_, s.uploaded, 0), "uploading");
  }
  if (s.graph) {
    if (CUresult r = cuda().cuGraphLaunch(s.graph, stream_); r != CUDA_SUCCESS) fail(r, "launching " + s.span);
  } else {
    auto moment = [&](size_t k) {
      if (!s.moments.empty()) check(cuda().cuEventRecord(s.moments[k], stream_), "taking times");
    };
    moment(0);
    for (size_t k = 0; k < s.steps.size(); ++k) {
      try {
        enqueue(s.steps[k], stream_);
      } catch (const Error& e) {
        if (s.steps[k].collective()) end_group(e.what());
        throw;
      }
      moment(k + 1);
    }
  }
  if (s.bytes) check(cuda().cuEventRecord(s.taken, stream_), "uploading");
  return depart(s.span);
}

uint64_t Driver::depart(const std::string& span) {
  Flight flight{tickets_ + 1, event(), span};
  check(cuda().cuEventRecord(flight.done, stream_), "submitting");
  flights_.push_back(std::move(flight));
  return ++tickets_;
}

void Driver::land(const Flight& flight, CUresult result) {
  free_events_.push_back(flight.done);
  if (result == CUDA_SUCCESS) return;
  // After an unknown error, the content of written memory is undefined, so the device counts as lost.
  Code code = code_of(result) == Code::internal ? Code::device_lost : code_of(result);
  Error error(code, fmt::format("cuda: {}: {} failed on the device: {} (set TUTTI_TRACE=kernels to run the launches "
                                "one by one and name the one that failed)",
                                name_, flight.span, result_text(cuda(), result)));
  if (error.code == Code::device_lost) context_->lose(error.what());
  throw error;
}

void Driver::do_wait(uint64_t ticket, uint64_t timeout_ns) {
  using Clock = std::chrono::steady_clock;
  Current in(*context_);
  auto start = Clock::now();
  if (group_) group_->expect_alive();
  while (!flights_.empty() && flights_.front().ticket <= ticket) {
    const Flight& flight = flights_.front();
    const bool asks = timeout_ns != ~uint64_t{0} || group_;  // the group's failures do not end its work
    CUresult result = asks ? cuda().cuEventQuery(flight.done) : cuda().cuEventSynchronize(flight.done);
    if (result == CUDA_ERROR_NOT_READY) {
      look();
      auto passed =
          static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
      if (passed >= timeout_ns)
        throw Error(Code::timeout, fmt::format("cuda: {}: {} did not finish within {:.3f} s", name_, flight.span,
                                               static_cast<double>(timeout_ns) / 1e9));
      std::this_thread::yield();
      continue;
    }
    Flight done = flight;
    flights_.pop_front();
    land(done, result);
  }
}

}  // namespace tutti::cuda
