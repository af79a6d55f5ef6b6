// Captures a sequence as a CUDA graph whose independent branches may run concurrently.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "backends/cuda/driver.h"

namespace tutti::cuda {

void Driver::branch(const std::vector<Step>& steps, std::vector<CUevent>& events) {
  std::vector<std::vector<Access>> accesses;
  std::vector<bool> apart;
  for (const Step& step : steps) {
    accesses.push_back(step.accesses);
    apart.push_back(step.collective());
  }
  const auto streams = static_cast<uint32_t>(branches_.size()) + 1;
  std::vector<Placed> placed = place(accesses, streams, apart);
  std::vector<bool> awaited(steps.size());
  uint32_t used = 0;
  for (const Placed& p : placed) {
    used = std::max(used, p.stream);
    for (uint32_t k : p.waits) awaited[k] = true;
  }
  auto stream = [&](uint32_t s) { return s == streams ? sums_ : s ? branches_[s - 1] : stream_; };
  auto mark = [&](CUstream at) {
    events.push_back(nullptr);
    check(cuda().cuEventCreate(&events.back(), CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    check(cuda().cuEventRecord(events.back(), at), "recording a graph");
    return events.back();
  };
  auto wait = [&](CUstream at, CUevent event) { check(cuda().cuStreamWaitEvent(at, event, 0), "recording a graph"); };
  if (used) {
    CUevent begin = mark(stream_);  // a stream joins the capture by waiting for a captured event …
    for (uint32_t s = 1; s <= used; ++s) wait(stream(s), begin);
  }
  std::vector<CUevent> done(steps.size());
  for (size_t k = 0; k < steps.size(); ++k) {
    CUstream at = stream(placed[k].stream);
    for (uint32_t w : placed[k].waits) wait(at, done[w]);
    enqueue(steps[k], at);
    if (awaited[k]) done[k] = mark(at);
  }
  for (uint32_t s = 1; s <= used; ++s) wait(stream_, mark(stream(s)));  // … and must be joined before the capture ends
}

CUgraphExec Driver::captured(const Sequence& sequence) {
  try {
    return capture(sequence);
  } catch (const Error& e) {
    // either all ranks launch a collective as part of a graph, or none
    if (e.code == Code::device_lost || std::ranges::any_of(sequence.steps, &Step::collective)) throw;
    if (log_ && !std::exchange(complained_, true))
      log_(fmt::format("{} cannot record a CUDA graph of {}, so its launches are submitted one by one: {}", name_,
                       sequence.span, e.what()));
    return nullptr;
  }
}

CUgraphExec Driver::capture(const Sequence& sequence) {
  std::vector<CUevent> events;
  check(cuda().cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), "recording a graph");
  std::exception_ptr error;
  try {
    branch(sequence.steps, events);
  } catch (...) {
    error = std::current_exception();
  }
  CUgraph graph = nullptr;
  CUresult ended = cuda().cuStreamEndCapture(stream_, &graph);
  for (CUevent e : events)
    if (e) cuda().cuEventDestroy(e);
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

}  // namespace tutti::cuda
