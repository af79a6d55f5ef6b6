// Opening, recording, submitting, waiting.
#include "backends/cuda/driver.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace tutti::cuda {

Driver::Driver(std::shared_ptr<const Libraries> libraries, const Found& found, const MakeLibrary& library)
    : libraries_(std::move(libraries)),
      name_(found.info.name),
      architecture_(found.architecture),
      device_(found.handle) {
  const char* graphs = std::getenv("TUTTI_CUDA_GRAPH");
  graphs_ = !graphs || std::string(graphs) != "0";
  traits_ = traits_of(*libraries_, found);
  check(cuda().cuDevicePrimaryCtxRetain(&context_, device_), "opening the device");
  try {
    enter();
    check(cuda().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    check(cuda().cuStreamCreate(&copies_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    if (library) library_ = library();
    traits_.library = library_.get();
  } catch (...) {
    if (stream_) cuda().cuStreamDestroy(stream_);
    cuda().cuDevicePrimaryCtxRelease(device_);
    throw;
  }
}

Driver::~Driver() {
  cuda().cuCtxSetCurrent(context_);  // results are ignored: on a lost device everything fails, and nothing can be done
  cuda().cuStreamSynchronize(copies_);
  cuda().cuStreamSynchronize(stream_);
  for (auto& [id, sequence] : sequences_) destroy(sequence);
  sequences_.clear();
  library_.reset();
  for (Flight& f : flights_) cuda().cuEventDestroy(f.done);
  for (CUevent e : free_events_) cuda().cuEventDestroy(e);
  for (Kernel& k : kernels_) cuda().cuModuleUnload(k.module);
  for (auto& [id, m] : memories_) cuda().cuMemFree(m.at);
  for (auto& [memory, pinned] : pinned_) cuda().cuMemFreeHost(memory);
  cuda().cuStreamDestroy(copies_);
  cuda().cuStreamDestroy(stream_);
  cuda().cuCtxSetCurrent(nullptr);
  cuda().cuDevicePrimaryCtxRelease(device_);
}

void Driver::enter() {
  if (!lost_.empty())
    throw Error(Code::device_lost, lost_,
                "start the program again; if it persists, look at `nvidia-smi` and the system log");
  check(cuda().cuCtxSetCurrent(context_), "cuCtxSetCurrent");
}

void Driver::check(CUresult result, const std::string& what) {
  if (result == CUDA_SUCCESS) return;
  Error error(code_of(result), fmt::format("cuda: {}: {}: {}", name_, what, result_text(cuda(), result)));
  if (error.code == Code::no_memory) error.remedy = "use a smaller batch or model, or another device";
  if (error.code == Code::device_lost) lost_ = error.what();
  throw error;
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
  for (const sdk::Range& range : launch.buffers) {
    s.arguments.push_back(checked(range, launch.name));
    if (range.bytes == 0) throw invalid(fmt::format("cuda: {}: an empty buffer", launch.name));
    if (range.offset % traits_.alignment != 0 && !launch.copy)
      throw invalid(
          fmt::format("cuda: {}: offset {} is no multiple of {}", launch.name, range.offset, traits_.alignment));
  }
  if (launch.copy) {
    if (launch.buffers.size() != 2 || launch.buffers[0].bytes != launch.buffers[1].bytes)
      throw invalid(fmt::format("cuda: the copy '{}' needs two ranges of one size", launch.name));
    s.bytes = launch.buffers[0].bytes;
    return s;
  }
  if (launch.library) {
    s.call = std::static_pointer_cast<const Call>(launch.library);
    return s;
  }
  if (launch.kernel >= kernels_.size())
    throw invalid(fmt::format("cuda: '{}': there is no kernel {}", launch.name, launch.kernel));
  const Kernel& kernel = kernels_[launch.kernel];
  if (launch.buffers.size() != kernel.buffers)
    throw invalid(fmt::format("cuda: '{}' gives {} buffers to a kernel of {}", launch.name, launch.buffers.size(),
                              kernel.buffers));
  for (uint32_t n : launch.groups)
    if (n == 0) throw invalid(fmt::format("cuda: '{}' has no groups", launch.name));
  s.function = kernel.function;
  s.groups = launch.groups;
  s.local = kernel.local;
  return s;
}

void Driver::enqueue(const Step& step) {
  if (step.call) return step.call->run(stream_, step.arguments);
  if (!step.function)
    return check(cuda().cuMemcpyDtoDAsync(step.arguments[1], step.arguments[0], step.bytes, stream_),
                 fmt::format("'{}'", step.name));
  std::vector<void*> arguments;
  for (const CUdeviceptr& a : step.arguments) arguments.push_back(const_cast<CUdeviceptr*>(&a));
  check(cuda().cuLaunchKernel(step.function, step.groups[0], step.groups[1], step.groups[2], step.local[0],
                              step.local[1], step.local[2], 0, stream_, arguments.data(), nullptr),
        fmt::format("launching '{}'", step.name));
}

CUgraphExec Driver::capture(const Sequence& sequence) {
  check(cuda().cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "recording a graph");
  std::exception_ptr error;
  try {
    for (const Step& step : sequence.steps) enqueue(step);
  } catch (...) {
    error = std::current_exception();
  }
  CUgraph graph = nullptr;
  CUresult ended = cuda().cuStreamEndCapture(stream_, &graph);
  if (error) {
    if (graph) cuda().cuGraphDestroy(graph);
    std::rethrow_exception(error);
  }
  check(ended, "recording a graph");
  CUgraphExec executable = nullptr;
  CUresult made = cuda().cuGraphInstantiate(&executable, graph, 0);
  cuda().cuGraphDestroy(graph);
  check(made, "preparing a graph");
  return executable;
}

sdk::SequenceId Driver::record(std::span<const sdk::Launch> launches, const sdk::Upload* upload) {
  enter();
  Sequence s;
  s.span = launches.empty()       ? "a sequence without launches"
           : launches.size() == 1 ? fmt::format("'{}'", launches[0].name)
                                  : fmt::format("one of {} launches from '{}' to '{}'", launches.size(),
                                                launches.front().name, launches.back().name);
  try {
    if (upload && upload->to.bytes) {
      Step onward;
      onward.name = "upload";
      onward.bytes = s.bytes = upload->to.bytes;
      CUdeviceptr to = checked(upload->to, "upload");
      s.upload = upload->from;
      s.landing = device_memory(s.bytes, "uploads");
      s.landed = event();
      s.taken = event();
      onward.arguments = {s.landing, to};
      s.steps.push_back(std::move(onward));
    }
    for (const sdk::Launch& launch : launches) s.steps.push_back(prepare(launch));
    if (graphs_ && s.steps.size() > 1) s.graph = capture(s);
  } catch (...) {
    destroy(s);
    throw;
  }
  sequences_.emplace(next_sequence_, std::move(s));
  return next_sequence_++;
}

void Driver::destroy(Sequence& s) {
  if (s.graph) cuda().cuGraphExecDestroy(s.graph);
  for (CUevent e : {s.landed, s.taken})
    if (e) cuda().cuEventDestroy(e);
  if (s.landing) {
    cuda().cuMemFree(s.landing);
    allocated_ -= s.bytes;
  }
}

void Driver::forget(sdk::SequenceId sequence) {
  auto at = sequences_.find(sequence);
  if (at == sequences_.end()) throw invalid(fmt::format("cuda: there is no sequence {}", sequence));
  enter();
  destroy(at->second);
  sequences_.erase(at);
}

uint64_t Driver::submit(sdk::SequenceId sequence) {
  auto at = sequences_.find(sequence);
  if (at == sequences_.end()) throw invalid(fmt::format("cuda: there is no sequence {}", sequence));
  enter();
  const Sequence& s = at->second;
  // Whoever never waits must not pile up events; one that failed stays, for the wait to come.
  while (flights_.size() > 64 && cuda().cuEventQuery(flights_.front().done) == CUDA_SUCCESS) {
    free_events_.push_back(flights_.front().done);
    flights_.pop_front();
  }
  if (s.bytes) {
    check(cuda().cuStreamWaitEvent(copies_, s.taken, 0), "uploading");  // an event never recorded holds nobody up
    check(cuda().cuMemcpyHtoDAsync(s.landing, s.upload, s.bytes, copies_), "uploading");
    check(cuda().cuEventRecord(s.landed, copies_), "uploading");
    check(cuda().cuStreamWaitEvent(stream_, s.landed, 0), "uploading");
  }
  if (s.graph)
    check(cuda().cuGraphLaunch(s.graph, stream_), "launching " + s.span);
  else
    for (const Step& step : s.steps) enqueue(step);
  if (s.bytes) check(cuda().cuEventRecord(s.taken, stream_), "uploading");
  Flight flight{tickets_ + 1, event(), s.span};
  check(cuda().cuEventRecord(flight.done, stream_), "submitting");
  flights_.push_back(std::move(flight));
  return ++tickets_;
}

void Driver::land(const Flight& flight, CUresult result) {
  if (result == CUDA_SUCCESS) return free_events_.push_back(flight.done);
  lost_ = fmt::format(
      "cuda: {}: {} failed on the device: {} (with TUTTI_TRACE=kernels launches run one by one, and this "
      "names the one that failed)",
      name_, flight.span, result_text(cuda(), result));
  enter();
}

void Driver::wait(uint64_t ticket, uint64_t timeout_ns) {
  using Clock = std::chrono::steady_clock;
  if (ticket > tickets_) throw invalid(fmt::format("cuda: there is no ticket {}", ticket));
  enter();
  auto start = Clock::now();
  while (!flights_.empty() && flights_.front().ticket <= ticket) {
    const Flight& flight = flights_.front();
    CUresult result =
        timeout_ns == ~uint64_t{0} ? cuda().cuEventSynchronize(flight.done) : cuda().cuEventQuery(flight.done);
    if (result == CUDA_ERROR_NOT_READY) {
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
