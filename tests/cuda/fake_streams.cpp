// Streams, events, captures and graphs of the fake driver.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "tests/cuda/fake_world.h"

namespace tutti::cuda::fake {
namespace {

size_t streams_made = 0, events_made = 0;

// ---- running

/// Runs the oldest work of a stream. False if that waits for another process.
bool step(Stream& s) {
  Work work = std::move(s.work.front());
  s.work.pop_front();
  if (the.sticky != CUDA_SUCCESS || work()) return true;
  s.work.push_front(std::move(work));
  return false;
}
void pause() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }
/// Runs the event's stream until it has passed that record. False if its work waits for another process.
bool reach(CUevent event, size_t record) {
  while (the.events.at(event).done < record && the.sticky == CUDA_SUCCESS) {
    Stream& s = the.streams.at(the.events.at(event).stream);
    if (s.work.empty()) return true;
    if (!step(s)) return false;
  }
  return true;
}
void wait_until_reached(CUevent event, size_t record) {
  while (!reach(event, record)) pause();
}

/// Whether each node of `front` is, or comes before, one of `ends`.
bool joined(const Graph& graph, const Front& front, const Front& ends) {
  Front seen;
  std::vector<size_t> open(ends.begin(), ends.end());
  while (!open.empty()) {
    size_t n = open.back();
    open.pop_back();
    if (!seen.insert(n).second) continue;
    open.insert(open.end(), graph.nodes[n].after.begin(), graph.nodes[n].after.end());
  }
  return std::includes(seen.begin(), seen.end(), front.begin(), front.end());
}

/// A launch of a graph: runs every node when all that it comes after are done. Where one waits for another process,
/// others go on.
class Launch {
 public:
  explicit Launch(Graph graph) : graph_(std::move(graph)), left_(graph_.nodes.size()), followers_(graph_.nodes.size()) {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      left_[n] = graph_.nodes[n].after.size();
      if (!left_[n]) ready_.push_back(n);
      for (size_t before : graph_.nodes[n].after) followers_[before].push_back(n);
    }
  }
  bool go_on() {
    Front waiting;
    while (the.sticky == CUDA_SUCCESS) {
      std::vector<size_t> now;
      std::ranges::copy_if(ready_, std::back_inserter(now), [&](size_t n) { return !waiting.contains(n); });
      if (now.empty()) return ready_.empty();
      size_t n = now.at(the.state.next ? the.state.next(now) : 0);
      if (!graph_.nodes[n].work()) {
        waiting.insert(n);
        continue;
      }
      ready_.erase(std::ranges::find(ready_, n));
      for (size_t f : followers_[n])
        if (!--left_[f]) ready_.insert(std::lower_bound(ready_.begin(), ready_.end(), f), f);
    }
    return true;
  }

 private:
  Graph graph_;
  std::vector<size_t> left_, ready_;
  std::vector<std::vector<size_t>> followers_;
};

/// The device runs a piece of some stream's work while the host goes on.
void run_meanwhile() {
  if (!the.state.meanwhile) return;
  size_t chosen = the.state.meanwhile(the.streams.size());
  if (chosen >= the.streams.size()) return;
  Stream& s = std::next(the.streams.begin(), static_cast<int64_t>(chosen))->second;
  if (!s.work.empty()) step(s);
}

}  // namespace

void go_on() {
  for (auto& [handle, stream] : the.streams)
    if (!stream.work.empty()) step(stream);
}

void drain(CUstream stream) {
  auto at = the.streams.find(stream);
  while (at != the.streams.end() && !at->second.work.empty())
    if (!step(at->second)) pause();
}
void drain_all() {
  for (auto& [handle, stream] : the.streams) drain(handle);
}

CUresult invalidate(CUresult why) {
  if (the.capturing) the.capturing->invalid = true;
  return why;
}

void stream_functions(CudaApi& a) {
  a.cuStreamCreate = [](CUstream* s, unsigned flags) {
    FAKE_HERE("cuStreamCreate");
    *s = handle<CUstream>(0x100 + ++streams_made);
    the.streams[*s] = {current_context, !(flags & CU_STREAM_NON_BLOCKING), {}};
    ++the.state.live_streams;
    return CUDA_SUCCESS;
  };
  a.cuStreamDestroy = [](CUstream s) {
    if (the.sticky == CUDA_SUCCESS) drain(s);
    the.streams.erase(s);
    --the.state.live_streams;
    FAKE("cuStreamDestroy");
    return CUDA_SUCCESS;
  };
  a.cuStreamSynchronize = [](CUstream s) {
    FAKE_HERE("cuStreamSynchronize");
    if (the.capturing && the.capturing->streams.contains(s)) return invalidate(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (CUresult refused = unsafe_call()) return refused;
    drain(s);
    return the.sticky;
  };
  a.cuStreamWaitEvent = [](CUstream stream, CUevent event, unsigned) {
    FAKE_HERE("cuStreamWaitEvent");
    if (the.capturing) {
      auto at = the.capturing->events.find(event);
      if (at != the.capturing->events.end()) {
        if (the.capturing->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        the.capturing->streams[stream].insert(at->second.begin(), at->second.end());
        return CUDA_SUCCESS;
      }
      if (the.capturing->streams.contains(stream)) return invalidate(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    }
    bool captured = false;
    if (size_t record = the.events.at(event).asked)
      return enqueue_waiting(
          stream, [=] { return reach(event, record); }, captured);
    return CUDA_SUCCESS;
  };
  a.cuStreamBeginCapture = [](CUstream stream, CUstreamCaptureMode mode) {
    FAKE_HERE("cuStreamBeginCapture");
    if (!stream || the.capturing) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    the.capturing.emplace();
    the.capturing->origin = stream;
    the.capturing->mode = mode;
    the.capturing->streams[stream] = {};
    return CUDA_SUCCESS;
  };
  a.cuStreamEndCapture = [](CUstream stream, CUgraph* g) {
    *g = nullptr;
    if (!the.capturing) return CUDA_ERROR_ILLEGAL_STATE;
    Capture ended = std::move(*the.capturing);
    the.capturing.reset();
    FAKE("cuStreamEndCapture");
    if (stream != ended.origin) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (ended.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    for (const auto& [other, front] : ended.streams)
      if (!joined(*ended.graph, front, ended.streams.at(stream))) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    *g = reinterpret_cast<CUgraph>(ended.graph.release());
    return CUDA_SUCCESS;
  };
}

void graph_functions(CudaApi& a) {
  a.cuGraphInstantiate = [](CUgraphExec* e, CUgraph g, unsigned long long) {
    FAKE_UNSAFE("cuGraphInstantiate");
    auto* graph = new Graph(*reinterpret_cast<Graph*>(g));
    *e = reinterpret_cast<CUgraphExec>(graph);
    ++the.state.live_graphs;
    the.state.graph_nodes = graph->nodes.size();
    the.state.graph_edges = 0;
    for (const Node& n : graph->nodes) the.state.graph_edges += n.after.size();
    return CUDA_SUCCESS;
  };
  a.cuGraphLaunch = [](CUgraphExec e, CUstream stream) {
    FAKE_HERE("cuGraphLaunch");
    bool captured = false;
    auto launch = std::make_shared<Launch>(*reinterpret_cast<Graph*>(e));
    return enqueue_waiting(
        stream, [launch] { return launch->go_on(); }, captured);
  };
  a.cuGraphDestroy = [](CUgraph g) {
    delete reinterpret_cast<Graph*>(g);
    return CUDA_SUCCESS;
  };
  a.cuGraphExecDestroy = [](CUgraphExec e) {
    delete reinterpret_cast<Graph*>(e);
    --the.state.live_graphs;
    return CUDA_SUCCESS;
  };
}

/// A captured event belongs to its capture: nobody can wait for it.
CUresult of_capture(CUevent e) {
  return the.capturing && the.capturing->events.contains(e) ? invalidate(CUDA_ERROR_CAPTURED_EVENT)
         : the.events.at(e).captured                        ? CUDA_ERROR_CAPTURED_EVENT
                                                            : CUDA_SUCCESS;
}

void event_functions(CudaApi& a) {
  a.cuEventCreate = [](CUevent* e, unsigned flags) {
    FAKE_HERE("cuEventCreate");
    ++the.state.live_events;
    *e = handle<CUevent>(++events_made);
    the.events[*e].timing = !(flags & CU_EVENT_DISABLE_TIMING);
    return CUDA_SUCCESS;
  };
  a.cuEventDestroy = [](CUevent e) {
    if (the.sticky == CUDA_SUCCESS) wait_until_reached(e, the.events.at(e).asked);
    the.events.erase(e);
    --the.state.live_events;
    return CUDA_SUCCESS;
  };
  a.cuEventRecord = [](CUevent e, CUstream stream) {
    FAKE_HERE("cuEventRecord");
    if (the.capturing)
      if (auto at = the.capturing->streams.find(stream); at != the.capturing->streams.end()) {
        if (the.capturing->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        the.capturing->events[e] = at->second;
        the.events.at(e).captured = true;
        return CUDA_SUCCESS;
      }
    Event& event = the.events.at(e);
    if (auto s = the.streams.find(stream); event.timing && s != the.streams.end() && s->second.work.empty())
      ++the.state.idle_timings;
    event.captured = false;
    event.stream = stream;
    size_t record = ++event.asked;
    return enqueue(stream, [=] {
      the.events.at(e).done = record;
      the.events.at(e).at = the.state.clock;
    });
  };
  a.cuEventQuery = [](CUevent e) {
    FAKE_HERE("cuEventQuery");
    if (CUresult refused = of_capture(e)) return refused;
    if (CUresult refused = unsafe_call()) return refused;
    Event& event = the.events.at(e);
    if (event.done == event.asked) return CUDA_SUCCESS;
    step(the.streams.at(event.stream));  // the device goes on meanwhile
    return the.sticky != CUDA_SUCCESS ? the.sticky : CUDA_ERROR_NOT_READY;
  };
  a.cuEventSynchronize = [](CUevent e) {
    FAKE_HERE("cuEventSynchronize");
    if (CUresult refused = of_capture(e)) return refused;
    if (CUresult refused = unsafe_call()) return refused;
    wait_until_reached(e, the.events.at(e).asked);
    return the.sticky;
  };
  a.event_elapsed = [](float* ms, CUevent from, CUevent to) {
    FAKE("cuEventElapsedTime");
    for (CUevent e : {from, to}) {
      const Event& event = the.events.at(e);
      if (!event.timing || event.asked == 0) return CUDA_ERROR_INVALID_HANDLE;
      if (event.done != event.asked) return CUDA_ERROR_NOT_READY;
    }
    *ms = static_cast<float>(the.events.at(to).at - the.events.at(from).at);
    return CUDA_SUCCESS;
  };
}

CUresult enqueue(CUstream stream, std::function<void()> work) {
  bool captured = false;
  return enqueue_waiting(
      stream, [work = std::move(work)] { return work(), true; }, captured);
}

CUresult enqueue_waiting(CUstream stream, std::function<bool()> work, bool& captured) {
  if (the.sticky != CUDA_SUCCESS) return the.sticky;
  if (the.capturing) {
    auto at = the.capturing->streams.find(stream);
    if (at != the.capturing->streams.end()) {
      if (the.capturing->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      std::vector<Node>& nodes = the.capturing->graph->nodes;
      nodes.push_back({std::move(work), at->second});
      at->second = {nodes.size() - 1};
      captured = true;
      return CUDA_SUCCESS;
    }
    if (!stream && the.streams.at(the.capturing->origin).blocking)
      return invalidate(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
  if (!stream) {
    while (!work()) pause();
    return the.sticky;
  }
  auto at = the.streams.find(stream);
  if (at == the.streams.end() || at->second.context != current_context) return CUDA_ERROR_INVALID_HANDLE;
  at->second.work.push_back(std::move(work));
  run_meanwhile();
  return CUDA_SUCCESS;
}

CUresult unsafe_call() {
  if (!the.capturing || the.capturing->mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  return invalidate(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

}  // namespace tutti::cuda::fake
