#include "tests/cuda/fake_cuda.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace tutti::cuda::fake {
namespace {

template <class T>
T handle(size_t n) {
  return reinterpret_cast<T>(n);
}
template <class T>
size_t number(T* handle) {
  return reinterpret_cast<size_t>(handle);
}

// ---- what there is

struct Event {
  bool timing = true;
  size_t asked = 0, done = 0;  // how often it was recorded, and how often its stream came to that
  CUstream stream = nullptr;   // of the newest record
  double at = 0;               // of the clock
  bool captured = false;
};
struct Stream {
  CUcontext context = nullptr;
  bool blocking = false;
  std::deque<std::function<void()>> work;
};
struct Node {
  std::function<void()> work;
  std::set<size_t> after;
};
struct Graph {
  std::vector<Node> nodes;
};
/// Nodes that what comes next in a stream, or behind an event, must wait for.
using Front = std::set<size_t>;
/// The capture that is going on: its first stream, and every stream in it.
struct Capture {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  CUstream origin = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::map<CUstream, Front> streams;
  std::map<CUevent, Front> events;
  bool invalid = false;
};

constexpr size_t contexts = 0x10, foreign = 0xF0;
std::unique_ptr<State> current = std::make_unique<State>();
std::map<CUdeviceptr, std::vector<char>> blocks;
std::map<void*, std::vector<char>> pinned;
std::map<CUevent, Event> events;
std::map<CUstream, Stream> streams;
std::map<CUcontext, int> retained;
std::optional<Capture> capturing;
CUresult sticky = CUDA_SUCCESS;
thread_local CUcontext current_context = nullptr;
std::mutex nvrtc_lock;
size_t streams_made = 0, events_made = 0;

bool is_sticky(CUresult r) { return code_of(r) == Code::device_lost; }

/// One call: seen, and failing where the test wants it or the device is broken.
CUresult call(const std::string& name) {
  current->calls.push_back(name);
  if (sticky != CUDA_SUCCESS) return sticky;
  auto at = current->failing.find(name);
  if (at == current->failing.end()) return CUDA_SUCCESS;
  if (is_sticky(at->second)) sticky = at->second;
  return at->second;
}
/// One that needs a current context.
CUresult call_here(const std::string& name) {
  if (CUresult failed = call(name)) return failed;
  return usable();
}
/// One that may wait for the device or change its memory.
CUresult call_unsafe(const std::string& name) {
  if (CUresult failed = call_here(name)) return failed;
  return unsafe_call();
}

#define FAKE(name) \
  if (CUresult failed = call(name)) return failed
#define FAKE_HERE(name) \
  if (CUresult failed = call_here(name)) return failed
#define FAKE_UNSAFE(name) \
  if (CUresult failed = call_unsafe(name)) return failed

// ---- running

/// Runs the oldest work of a stream.
void step(Stream& s) {
  auto work = std::move(s.work.front());
  s.work.pop_front();
  if (sticky == CUDA_SUCCESS) work();
}
void drain(CUstream stream) {
  auto at = streams.find(stream);
  while (at != streams.end() && !at->second.work.empty()) step(at->second);
}
void drain_all() {
  for (auto& [handle, stream] : streams) drain(handle);
}
/// Runs the event's stream until it has passed that record.
void reach(CUevent event, size_t record) {
  while (events.at(event).done < record && sticky == CUDA_SUCCESS) {
    Stream& s = streams.at(events.at(event).stream);
    if (s.work.empty()) return;
    step(s);
  }
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

void run(const Graph& graph) {
  std::set<size_t> open, done;
  for (size_t n = 0; n < graph.nodes.size(); ++n) open.insert(n);
  while (!open.empty() && sticky == CUDA_SUCCESS) {
    std::vector<size_t> ready;
    for (size_t n : open)
      if (std::includes(done.begin(), done.end(), graph.nodes[n].after.begin(), graph.nodes[n].after.end()))
        ready.push_back(n);
    size_t n = ready.at(current->next ? current->next(ready) : 0);
    graph.nodes[n].work();
    open.erase(n);
    done.insert(n);
  }
}

CUresult invalidate(CUresult why) {
  if (capturing) capturing->invalid = true;
  return why;
}

// ---- the driver's functions

void listing(CudaApi& a) {
  a.cuInit = [](unsigned) {
    FAKE("cuInit");
    return CUDA_SUCCESS;
  };
  a.cuDriverGetVersion = [](int* v) {
    *v = current->driver_version;
    return CUDA_SUCCESS;
  };
  a.cuDeviceGetCount = [](int* n) {
    FAKE("cuDeviceGetCount");
    *n = current->devices;
    return CUDA_SUCCESS;
  };
  a.cuDeviceGet = [](CUdevice* d, int n) {
    *d = n;
    return CUDA_SUCCESS;
  };
  a.cuDeviceGetName = [](char* text, int size, CUdevice d) {
    snprintf(text, static_cast<size_t>(size), "Fake GPU %d", d);
    return CUDA_SUCCESS;
  };
  a.cuDeviceGetUuid = [](CUuuid* u, CUdevice d) {
    std::memset(u->bytes, d + 1, sizeof u->bytes);
    return CUDA_SUCCESS;
  };
  a.cuDeviceGetPCIBusId = [](char* text, int size, CUdevice d) {
    snprintf(text, static_cast<size_t>(size), "0000:%02X:00.0", 0xA0 + d);
    return CUDA_SUCCESS;
  };
  a.cuDeviceTotalMem = [](size_t* bytes, CUdevice) {
    *bytes = current->memory;
    return CUDA_SUCCESS;
  };
  a.cuDeviceGetAttribute = [](int* v, CUdevice_attribute which, CUdevice) {
    *v = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? current->capability / 10
         : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? current->capability % 10
         : which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT     ? 132
         : which == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK    ? 1024
                                                                 : 0;
    return CUDA_SUCCESS;
  };
  a.cuGetErrorName = [](CUresult e, const char** text) {
    *text = e == CUDA_ERROR_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : e == CUDA_ERROR_LAUNCH_FAILED   ? "CUDA_ERROR_LAUNCH_FAILED"
            : e == CUDA_ERROR_INVALID_CONTEXT ? "CUDA_ERROR_INVALID_CONTEXT"
                                              : "CUDA_ERROR_OTHER";
    return CUDA_SUCCESS;
  };
  a.cuGetErrorString = [](CUresult, const char** text) {
    *text = "as the test wanted";
    return CUDA_SUCCESS;
  };
}

void context_functions(CudaApi& a) {
  a.cuDevicePrimaryCtxRetain = [](CUcontext* c, CUdevice d) {
    FAKE("cuDevicePrimaryCtxRetain");
    *c = handle<CUcontext>(contexts + static_cast<size_t>(d));
    ++retained[*c];
    ++current->retained;
    return CUDA_SUCCESS;
  };
  a.cuDevicePrimaryCtxRelease = [](CUdevice d) {
    FAKE("cuDevicePrimaryCtxRelease");
    --retained[handle<CUcontext>(contexts + static_cast<size_t>(d))];
    --current->retained;
    return CUDA_SUCCESS;
  };
  a.cuCtxSetCurrent = [](CUcontext c) {
    FAKE("cuCtxSetCurrent");
    current_context = c;
    return CUDA_SUCCESS;
  };
  a.cuCtxGetCurrent = [](CUcontext* c) {
    FAKE("cuCtxGetCurrent");
    *c = current_context;
    return CUDA_SUCCESS;
  };
}

void memory_functions(CudaApi& a) {
  a.cuMemGetInfo = [](size_t* free, size_t* total) {
    *total = current->memory;
    *free = current->memory - current->allocated;
    return CUDA_SUCCESS;
  };
  a.cuMemAlloc = [](CUdeviceptr* p, size_t bytes) {
    FAKE_UNSAFE("cuMemAlloc");
    if (bytes > current->memory - current->allocated) return CUDA_ERROR_OUT_OF_MEMORY;
    std::vector<char> block(bytes, 0x5a);
    *p = number(block.data());
    blocks[*p] = std::move(block);
    current->allocated += bytes;
    return CUDA_SUCCESS;
  };
  a.cuMemFree = [](CUdeviceptr p) {
    if (sticky == CUDA_SUCCESS) drain_all();  // it waits for the device
    current->allocated -= blocks.at(p).size();
    blocks.erase(p);
    FAKE_UNSAFE("cuMemFree");
    return CUDA_SUCCESS;
  };
  a.cuMemHostAlloc = [](void** p, size_t bytes, unsigned) {
    FAKE_UNSAFE("cuMemHostAlloc");
    std::vector<char> block(bytes);
    *p = block.data();
    pinned[*p] = std::move(block);
    return CUDA_SUCCESS;
  };
  a.cuMemFreeHost = [](void* p) {
    if (sticky == CUDA_SUCCESS) drain_all();
    pinned.erase(p);
    FAKE_UNSAFE("cuMemFreeHost");
    return CUDA_SUCCESS;
  };
  a.cuMemsetD8Async = [](CUdeviceptr p, unsigned char v, size_t n, CUstream stream) {
    FAKE_HERE("cuMemsetD8Async");
    return enqueue(stream, [=] { std::memset(reinterpret_cast<void*>(p), v, n); });
  };
  a.cuMemcpyHtoDAsync = [](CUdeviceptr to, const void* from, size_t n, CUstream stream) {
    FAKE_HERE("cuMemcpyHtoDAsync");
    auto inside = [&](const auto& block) {
      const char* begin = block.second.data();
      return from >= begin && from < begin + block.second.size();
    };
    if (std::any_of(pinned.begin(), pinned.end(), inside))  // read when the stream comes to it
      return enqueue(stream, [=] { std::memcpy(reinterpret_cast<void*>(to), from, n); });
    const auto* bytes = static_cast<const char*>(from);
    return enqueue(stream, [to, copy = std::vector<char>(bytes, bytes + n)] {
      std::memcpy(reinterpret_cast<void*>(to), copy.data(), copy.size());
    });
  };
  a.cuMemcpyDtoHAsync = [](void* to, CUdeviceptr from, size_t n, CUstream stream) {
    FAKE_HERE("cuMemcpyDtoHAsync");
    return enqueue(stream, [=] { std::memcpy(to, reinterpret_cast<void*>(from), n); });
  };
  a.cuMemcpyDtoDAsync = [](CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream) {
    FAKE_HERE("cuMemcpyDtoDAsync");
    return enqueue(stream, [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n); });
  };
}

void stream_functions(CudaApi& a) {
  a.cuStreamCreate = [](CUstream* s, unsigned flags) {
    FAKE_HERE("cuStreamCreate");
    *s = handle<CUstream>(0x100 + ++streams_made);
    streams[*s] = {current_context, !(flags & CU_STREAM_NON_BLOCKING), {}};
    ++current->live_streams;
    return CUDA_SUCCESS;
  };
  a.cuStreamDestroy = [](CUstream s) {
    if (sticky == CUDA_SUCCESS) drain(s);
    streams.erase(s);
    --current->live_streams;
    FAKE("cuStreamDestroy");
    return CUDA_SUCCESS;
  };
  a.cuStreamSynchronize = [](CUstream s) {
    FAKE_HERE("cuStreamSynchronize");
    if (capturing && capturing->streams.contains(s)) return invalidate(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (CUresult refused = unsafe_call()) return refused;
    drain(s);
    return sticky;
  };
  a.cuStreamWaitEvent = [](CUstream stream, CUevent event, unsigned) {
    FAKE_HERE("cuStreamWaitEvent");
    if (capturing) {
      auto at = capturing->events.find(event);
      if (at != capturing->events.end()) {
        if (capturing->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        capturing->streams[stream].insert(at->second.begin(), at->second.end());
        return CUDA_SUCCESS;
      }
      if (capturing->streams.contains(stream)) return invalidate(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    }
    if (size_t record = events.at(event).asked) return enqueue(stream, [=] { reach(event, record); });
    return CUDA_SUCCESS;
  };
  a.cuStreamBeginCapture = [](CUstream stream, CUstreamCaptureMode mode) {
    FAKE_HERE("cuStreamBeginCapture");
    if (!stream || capturing) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    capturing.emplace();
    capturing->origin = stream;
    capturing->mode = mode;
    capturing->streams[stream] = {};
    return CUDA_SUCCESS;
  };
  a.cuStreamEndCapture = [](CUstream stream, CUgraph* g) {
    *g = nullptr;
    if (!capturing) return CUDA_ERROR_ILLEGAL_STATE;
    Capture ended = std::move(*capturing);
    capturing.reset();
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
    ++current->live_graphs;
    current->graph_nodes = graph->nodes.size();
    current->graph_edges = 0;
    for (const Node& n : graph->nodes) current->graph_edges += n.after.size();
    return CUDA_SUCCESS;
  };
  a.cuGraphLaunch = [](CUgraphExec e, CUstream stream) {
    FAKE_HERE("cuGraphLaunch");
    return enqueue(stream, [graph = *reinterpret_cast<Graph*>(e)] { run(graph); });
  };
  a.cuGraphDestroy = [](CUgraph g) {
    delete reinterpret_cast<Graph*>(g);
    return CUDA_SUCCESS;
  };
  a.cuGraphExecDestroy = [](CUgraphExec e) {
    delete reinterpret_cast<Graph*>(e);
    --current->live_graphs;
    return CUDA_SUCCESS;
  };
}

/// A captured event belongs to its capture: nobody can wait for it.
CUresult of_capture(CUevent e) {
  return capturing && capturing->events.contains(e) ? invalidate(CUDA_ERROR_CAPTURED_EVENT)
         : events.at(e).captured                    ? CUDA_ERROR_CAPTURED_EVENT
                                                    : CUDA_SUCCESS;
}

void event_functions(CudaApi& a) {
  a.cuEventCreate = [](CUevent* e, unsigned flags) {
    FAKE_HERE("cuEventCreate");
    ++current->live_events;
    *e = handle<CUevent>(++events_made);
    events[*e].timing = !(flags & CU_EVENT_DISABLE_TIMING);
    return CUDA_SUCCESS;
  };
  a.cuEventDestroy = [](CUevent e) {
    if (sticky == CUDA_SUCCESS) reach(e, events.at(e).asked);
    events.erase(e);
    --current->live_events;
    return CUDA_SUCCESS;
  };
  a.cuEventRecord = [](CUevent e, CUstream stream) {
    FAKE_HERE("cuEventRecord");
    if (capturing)
      if (auto at = capturing->streams.find(stream); at != capturing->streams.end()) {
        if (capturing->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        capturing->events[e] = at->second;
        events.at(e).captured = true;
        return CUDA_SUCCESS;
      }
    Event& event = events.at(e);
    if (auto s = streams.find(stream); event.timing && s != streams.end() && s->second.work.empty())
      ++current->idle_timings;
    event.captured = false;
    event.stream = stream;
    size_t record = ++event.asked;
    return enqueue(stream, [=] {
      events.at(e).done = record;
      events.at(e).at = current->clock;
    });
  };
  a.cuEventQuery = [](CUevent e) {
    FAKE_HERE("cuEventQuery");
    if (CUresult refused = of_capture(e)) return refused;
    if (CUresult refused = unsafe_call()) return refused;
    Event& event = events.at(e);
    if (event.done == event.asked) return CUDA_SUCCESS;
    step(streams.at(event.stream));  // the device goes on meanwhile
    return sticky != CUDA_SUCCESS ? sticky : CUDA_ERROR_NOT_READY;
  };
  a.cuEventSynchronize = [](CUevent e) {
    FAKE_HERE("cuEventSynchronize");
    if (CUresult refused = of_capture(e)) return refused;
    if (CUresult refused = unsafe_call()) return refused;
    reach(e, events.at(e).asked);
    return sticky;
  };
  a.event_elapsed = [](float* ms, CUevent from, CUevent to) {
    FAKE("cuEventElapsedTime");
    for (CUevent e : {from, to}) {
      const Event& event = events.at(e);
      if (!event.timing || event.asked == 0) return CUDA_ERROR_INVALID_HANDLE;
      if (event.done != event.asked) return CUDA_ERROR_NOT_READY;
    }
    *ms = static_cast<float>(events.at(to).at - events.at(from).at);
    return CUDA_SUCCESS;
  };
}

void kernel_functions(CudaApi& a) {
  a.cuModuleLoadData = [](CUmodule* m, const void* data) {
    FAKE_UNSAFE("cuModuleLoadData");
    if (std::memcmp(data, "cubin", 5) != 0) return CUDA_ERROR_INVALID_IMAGE;
    *m = handle<CUmodule>(++current->live_modules);
    return CUDA_SUCCESS;
  };
  a.cuModuleUnload = [](CUmodule) {
    --current->live_modules;
    return CUDA_SUCCESS;
  };
  a.cuModuleGetFunction = [](CUfunction* f, CUmodule m, const char*) {
    FAKE_HERE("cuModuleGetFunction");
    *f = reinterpret_cast<CUfunction>(m);
    return CUDA_SUCCESS;
  };
  a.cuFuncGetAttribute = [](int* v, CUfunction_attribute which, CUfunction) {
    FAKE_UNSAFE("cuFuncGetAttribute");
    *v = which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? current->most_threads : 0;
    return CUDA_SUCCESS;
  };
  a.cuLaunchKernel = [](CUfunction f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        CUstream stream, void** parameters, void**) {
    FAKE_HERE("cuLaunchKernel");
    return enqueue(
        stream, current->kernel ? current->kernel(f, parameters) : [] {});
  };
}

}  // namespace

size_t State::count(const std::string& name) const {
  return static_cast<size_t>(std::count(calls.begin(), calls.end(), name));
}

State& reset() {
  current = std::make_unique<State>();
  blocks.clear();
  pinned.clear();
  events.clear();
  streams.clear();
  retained.clear();
  capturing.reset();
  sticky = CUDA_SUCCESS;
  current_context = nullptr;
  return *current;
}
State& state() { return *current; }

CUresult enqueue(CUstream stream, std::function<void()> work) {
  if (sticky != CUDA_SUCCESS) return sticky;
  if (capturing) {
    auto at = capturing->streams.find(stream);
    if (at != capturing->streams.end()) {
      if (capturing->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      std::vector<Node>& nodes = capturing->graph->nodes;
      nodes.push_back({std::move(work), at->second});
      at->second = {nodes.size() - 1};
      return CUDA_SUCCESS;
    }
    if (!stream && streams.at(capturing->origin).blocking) return invalidate(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
  if (!stream) {
    work();
    return sticky;
  }
  auto at = streams.find(stream);
  if (at == streams.end() || at->second.context != current_context) return CUDA_ERROR_INVALID_HANDLE;
  at->second.work.push_back(std::move(work));
  return CUDA_SUCCESS;
}

CUresult unsafe_call() {
  if (!capturing || capturing->mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  return invalidate(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult usable() {
  if (sticky != CUDA_SUCCESS) return sticky;
  if (!current_context) return CUDA_ERROR_INVALID_CONTEXT;
  if (current_context == handle<CUcontext>(foreign)) return CUDA_SUCCESS;
  auto at = retained.find(current_context);
  return at == retained.end() || at->second == 0 ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

void fault(CUresult broken) { sticky = broken; }

CUcontext foreign_context() { return current_context = handle<CUcontext>(foreign); }

CudaApi cuda() {
  CudaApi a;
  listing(a);
  context_functions(a);
  memory_functions(a);
  stream_functions(a);
  graph_functions(a);
  event_functions(a);
  kernel_functions(a);
  return a;
}

NvrtcApi nvrtc() {
  NvrtcApi a;
  a.nvrtcVersion = [](int* major, int* minor) {
    *major = current->nvrtc_major, *minor = 0;
    return NVRTC_SUCCESS;
  };
  a.nvrtcGetErrorString = [](nvrtcResult) { return "NVRTC_ERROR"; };
  a.nvrtcGetNumSupportedArchs = [](int* n) {
    *n = static_cast<int>(current->architectures.size());
    return NVRTC_SUCCESS;
  };
  a.nvrtcGetSupportedArchs = [](int* list) {
    std::copy(current->architectures.begin(), current->architectures.end(), list);
    return NVRTC_SUCCESS;
  };
  a.nvrtcCreateProgram = [](nvrtcProgram* p, const char*, const char*, int, const char* const*, const char* const*) {
    *p = handle<nvrtcProgram>(1);
    return NVRTC_SUCCESS;
  };
  a.nvrtcCompileProgram = [](nvrtcProgram, int n, const char* const* options) {
    std::lock_guard hold(nvrtc_lock);
    ++current->compiled;
    current->compile_options.assign(options, options + n);
    return current->compile_error.empty() ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
  };
  a.nvrtcDestroyProgram = [](nvrtcProgram* p) {
    *p = nullptr;
    return NVRTC_SUCCESS;
  };
  a.nvrtcGetCUBINSize = [](nvrtcProgram, size_t* n) {
    *n = 6;
    return NVRTC_SUCCESS;
  };
  a.nvrtcGetCUBIN = [](nvrtcProgram, char* to) {
    std::memcpy(to, "cubin", 6);
    return NVRTC_SUCCESS;
  };
  a.nvrtcGetPTXSize = a.nvrtcGetCUBINSize;
  a.nvrtcGetPTX = a.nvrtcGetCUBIN;
  a.nvrtcGetProgramLogSize = [](nvrtcProgram, size_t* n) {
    *n = current->compile_error.size();
    return NVRTC_SUCCESS;
  };
  a.nvrtcGetProgramLog = [](nvrtcProgram, char* to) {
    std::memcpy(to, current->compile_error.data(), current->compile_error.size());
    return NVRTC_SUCCESS;
  };
  return a;
}

}  // namespace tutti::cuda::fake
