#include "backends/cuda/device_timer.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace tutti::cuda {
namespace {

constexpr double long_enough = 2e-4;  // minimum seconds between two events, so that their overhead is negligible
constexpr int most_repeats = 16, rounds = 4;

}  // namespace

void DeviceTimer::open(std::span<const uint64_t> bytes) {
  close();
  try {
    Current in(*context_);
    check(api_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    for (CUevent* e : {&begin_, &end_}) check(api_.cuEventCreate(e, CU_EVENT_DEFAULT), "cuEventCreate");
    for (uint64_t n : bytes) {
      CUdeviceptr at = 0;
      check(api_.cuMemAlloc(&at, n), "cuMemAlloc");
      buffers_.push_back(at);
    }
  } catch (...) {
    close();
    throw;
  }
  bytes_.assign(bytes.begin(), bytes.end());
}

void DeviceTimer::fill(size_t buffer, unsigned char byte) {
  Current in(*context_);
  check(api_.cuMemsetD8Async(buffers_.at(buffer), byte, bytes_.at(buffer), stream_), "cuMemsetD8Async");
}

void DeviceTimer::write(size_t buffer, std::span<const std::byte> bytes) {
  Current in(*context_);
  check(api_.cuMemcpyHtoDAsync(buffers_.at(buffer), bytes.data(), bytes.size(), stream_), "cuMemcpyHtoDAsync");
  check(api_.cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

void DeviceTimer::run(const Call& call) {
  Current in(*context_);
  call.run(stream_, buffers_);
  check(api_.cuStreamSynchronize(stream_), "a call of a library");
}

std::vector<std::byte> DeviceTimer::read(size_t buffer, uint64_t bytes) {
  Current in(*context_);
  std::vector<std::byte> to(bytes);
  check(api_.cuMemcpyDtoHAsync(to.data(), buffers_.at(buffer), bytes, stream_), "cuMemcpyDtoHAsync");
  check(api_.cuStreamSynchronize(stream_), "cuStreamSynchronize");
  return to;
}

void DeviceTimer::close() {
  if (!stream_) return;
  Current in(*context_, std::nothrow);
  api_.cuStreamSynchronize(stream_);  // results are ignored, because failures were reported before
  for (CUdeviceptr at : buffers_) api_.cuMemFree(at);
  buffers_.clear();
  for (CUevent* e : {&begin_, &end_})
    if (CUevent event = std::exchange(*e, nullptr)) api_.cuEventDestroy(event);
  api_.cuStreamDestroy(std::exchange(stream_, nullptr));
}

double DeviceTimer::timed(const std::function<void()>& work) {
  work();  // on an idle stream the first event fires before the host has launched what is to be measured
  check(api_.cuEventRecord(begin_, stream_), "cuEventRecord");
  work();
  check(api_.cuEventRecord(end_, stream_), "cuEventRecord");
  check(api_.cuEventSynchronize(end_), "cuEventSynchronize");
  float milliseconds = 0;
  check(api_.event_elapsed(&milliseconds, begin_, end_), "cuEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3;
}

CUgraphExec DeviceTimer::record(const Call& call, int repeats) {
  check(api_.cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), "recording a graph");
  std::exception_ptr error;
  try {
    for (int k = 0; k < repeats; ++k) call.run(stream_, buffers_);
  } catch (...) {
    error = std::current_exception();
  }
  CUgraph graph = nullptr;
  CUresult ended = api_.cuStreamEndCapture(stream_, &graph);
  CUgraphExec executable = nullptr;
  CUresult made = error || ended != CUDA_SUCCESS ? ended : api_.cuGraphInstantiate(&executable, graph, 0);
  if (graph) api_.cuGraphDestroy(graph);
  if (error) std::rethrow_exception(error);
  check(made, "recording a graph");
  return executable;
}

double DeviceTimer::seconds(const Call& call) {
  Current in(*context_);
  auto once = [&] { call.run(stream_, buffers_); };
  double first = std::max(timed(once), 1e-7);
  int repeats = std::clamp(static_cast<int>(long_enough / first), 1, most_repeats);
  Owned graph(record(call, repeats), api_.cuGraphExecDestroy);
  auto launch = [&] { check(api_.cuGraphLaunch(graph, stream_), "cuGraphLaunch"); };
  double best = timed(launch);
  for (int k = 1; k < rounds; ++k) best = std::min(best, timed(launch));
  return best / repeats;
}

}  // namespace tutti::cuda
