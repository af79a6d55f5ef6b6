#include "tests/cuda/fake_cuda.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

namespace tutti::cuda::fake {
namespace {

std::unique_ptr<State> current = std::make_unique<State>();
std::map<CUdeviceptr, std::vector<char>> blocks;
std::map<void*, std::vector<char>> host_blocks;
std::map<CUevent, double> recorded;  // the clock
std::mutex nvrtc_lock;
size_t streams_made = 0, events_made = 0;

/// One call: seen, and failing where the test wants it.
CUresult call(const std::string& name) {
  current->calls.push_back(name);
  auto at = current->failing.find(name);
  return at == current->failing.end() ? CUDA_SUCCESS : at->second;
}

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
  std::unique_ptr<Graph> graph;
  CUstream origin = nullptr;
  std::map<CUstream, Front> streams;
  std::map<CUevent, Front> events;
};
Capture capturing;

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
  while (!open.empty()) {
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

uint64_t number(const void* p) { return reinterpret_cast<uint64_t>(p); }
template <class T>
T handle(size_t n) {
  return reinterpret_cast<T>(n);
}

CUresult stop(const char* name) { return call(name); }
#define FAKE(name) \
  if (CUresult failed = stop(name)) return failed

CUresult get_name(CUresult e, const char** text) {
  *text = e == CUDA_ERROR_OUT_OF_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
          : e == CUDA_ERROR_LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED"
                                          : "CUDA_ERROR_OTHER";
  return CUDA_SUCCESS;
}

}  // namespace

size_t State::count(const std::string& name) const {
  return static_cast<size_t>(std::count(calls.begin(), calls.end(), name));
}

State& reset() {
  current = std::make_unique<State>();
  blocks.clear();
  host_blocks.clear();
  recorded.clear();
  capturing = {};
  return *current;
}
State& state() { return *current; }

void enqueue(CUstream stream, std::function<void()> work) {
  auto at = capturing.streams.find(stream);
  if (at == capturing.streams.end()) return work();
  std::vector<Node>& nodes = capturing.graph->nodes;
  nodes.push_back({std::move(work), at->second});
  at->second = {nodes.size() - 1};
}

CudaApi cuda() {
  CudaApi a;
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
  a.cuDevicePrimaryCtxRetain = [](CUcontext* c, CUdevice) {
    FAKE("cuDevicePrimaryCtxRetain");
    *c = handle<CUcontext>(1);
    return CUDA_SUCCESS;
  };
  a.cuDevicePrimaryCtxRelease = [](CUdevice) {
    FAKE("cuDevicePrimaryCtxRelease");
    return CUDA_SUCCESS;
  };
  a.cuCtxSetCurrent = [](CUcontext) {
    FAKE("cuCtxSetCurrent");
    return CUDA_SUCCESS;
  };
  a.cuCtxGetCurrent = [](CUcontext* c) {
    FAKE("cuCtxGetCurrent");
    *c = handle<CUcontext>(1);
    return CUDA_SUCCESS;
  };
  a.cuMemGetInfo = [](size_t* free, size_t* total) {
    *total = current->memory;
    *free = current->memory - current->allocated;
    return CUDA_SUCCESS;
  };
  a.cuMemAlloc = [](CUdeviceptr* p, size_t bytes) {
    FAKE("cuMemAlloc");
    if (bytes > current->memory - current->allocated) return CUDA_ERROR_OUT_OF_MEMORY;
    std::vector<char> block(bytes, 0x5a);
    *p = number(block.data());
    blocks[*p] = std::move(block);
    current->allocated += bytes;
    return CUDA_SUCCESS;
  };
  a.cuMemFree = [](CUdeviceptr p) {
    FAKE("cuMemFree");
    current->allocated -= blocks.at(p).size();
    blocks.erase(p);
    return CUDA_SUCCESS;
  };
  a.cuMemHostAlloc = [](void** p, size_t bytes, unsigned) {
    FAKE("cuMemHostAlloc");
    std::vector<char> block(bytes);
    *p = block.data();
    host_blocks[*p] = std::move(block);
    return CUDA_SUCCESS;
  };
  a.cuMemFreeHost = [](void* p) {
    FAKE("cuMemFreeHost");
    host_blocks.erase(p);
    return CUDA_SUCCESS;
  };
  a.cuMemsetD8Async = [](CUdeviceptr p, unsigned char v, size_t n, CUstream) {
    FAKE("cuMemsetD8Async");
    std::memset(reinterpret_cast<void*>(p), v, n);
    return CUDA_SUCCESS;
  };
  a.cuMemcpyHtoDAsync = [](CUdeviceptr to, const void* from, size_t n, CUstream) {
    FAKE("cuMemcpyHtoDAsync");
    std::memcpy(reinterpret_cast<void*>(to), from, n);
    return CUDA_SUCCESS;
  };
  a.cuMemcpyDtoHAsync = [](void* to, CUdeviceptr from, size_t n, CUstream) {
    FAKE("cuMemcpyDtoHAsync");
    std::memcpy(to, reinterpret_cast<void*>(from), n);
    return CUDA_SUCCESS;
  };
  a.cuMemcpyDtoDAsync = [](CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream) {
    FAKE("cuMemcpyDtoDAsync");
    enqueue(stream, [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n); });
    return CUDA_SUCCESS;
  };
  a.cuStreamCreate = [](CUstream* s, unsigned) {
    FAKE("cuStreamCreate");
    *s = handle<CUstream>(0x100 + ++streams_made);
    ++current->live_streams;
    return CUDA_SUCCESS;
  };
  a.cuStreamDestroy = [](CUstream) {
    FAKE("cuStreamDestroy");
    --current->live_streams;
    return CUDA_SUCCESS;
  };
  a.cuStreamSynchronize = [](CUstream) {
    FAKE("cuStreamSynchronize");
    return CUDA_SUCCESS;
  };
  a.cuStreamWaitEvent = [](CUstream stream, CUevent event, unsigned) {
    FAKE("cuStreamWaitEvent");
    auto at = capturing.events.find(event);
    if (at != capturing.events.end())
      capturing.streams[stream].insert(at->second.begin(), at->second.end());
    else if (capturing.streams.contains(stream))
      return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    return CUDA_SUCCESS;
  };
  a.cuStreamBeginCapture = [](CUstream stream, CUstreamCaptureMode) {
    FAKE("cuStreamBeginCapture");
    capturing = {std::make_unique<Graph>(), stream, {{stream, {}}}, {}};
    return CUDA_SUCCESS;
  };
  a.cuStreamEndCapture = [](CUstream stream, CUgraph* g) {
    Capture ended = std::exchange(capturing, {});
    *g = nullptr;
    FAKE("cuStreamEndCapture");
    if (stream != ended.origin) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    for (const auto& [other, front] : ended.streams)
      if (!joined(*ended.graph, front, ended.streams.at(stream))) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    *g = reinterpret_cast<CUgraph>(ended.graph.release());
    return CUDA_SUCCESS;
  };
  a.cuGraphInstantiate = [](CUgraphExec* e, CUgraph g, unsigned long long) {
    FAKE("cuGraphInstantiate");
    auto* graph = new Graph(*reinterpret_cast<Graph*>(g));
    *e = reinterpret_cast<CUgraphExec>(graph);
    ++current->live_graphs;
    current->graph_nodes = graph->nodes.size();
    current->graph_edges = 0;
    for (const Node& n : graph->nodes) current->graph_edges += n.after.size();
    return CUDA_SUCCESS;
  };
  a.cuGraphLaunch = [](CUgraphExec e, CUstream) {
    FAKE("cuGraphLaunch");
    run(*reinterpret_cast<Graph*>(e));
    return CUDA_SUCCESS;
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
  a.cuEventCreate = [](CUevent* e, unsigned) {
    FAKE("cuEventCreate");
    ++current->live_events;
    *e = handle<CUevent>(++events_made);
    return CUDA_SUCCESS;
  };
  a.cuEventDestroy = [](CUevent) {
    --current->live_events;
    return CUDA_SUCCESS;
  };
  a.cuEventRecord = [](CUevent e, CUstream stream) {
    FAKE("cuEventRecord");
    if (auto at = capturing.streams.find(stream); at != capturing.streams.end()) capturing.events[e] = at->second;
    recorded[e] = current->clock;
    return CUDA_SUCCESS;
  };
  a.cuEventQuery = [](CUevent) {
    FAKE("cuEventQuery");
    return CUDA_SUCCESS;
  };
  a.cuEventSynchronize = [](CUevent) {
    FAKE("cuEventSynchronize");
    return CUDA_SUCCESS;
  };
  a.event_elapsed = [](float* ms, CUevent from, CUevent to) {
    FAKE("cuEventElapsedTime");
    *ms = static_cast<float>(recorded.at(to) - recorded.at(from));
    return CUDA_SUCCESS;
  };
  a.cuModuleLoadData = [](CUmodule* m, const void* data) {
    FAKE("cuModuleLoadData");
    if (std::memcmp(data, "cubin", 5) != 0) return CUDA_ERROR_INVALID_IMAGE;
    *m = handle<CUmodule>(++current->live_modules);
    return CUDA_SUCCESS;
  };
  a.cuModuleUnload = [](CUmodule) {
    --current->live_modules;
    return CUDA_SUCCESS;
  };
  a.cuModuleGetFunction = [](CUfunction* f, CUmodule m, const char*) {
    FAKE("cuModuleGetFunction");
    *f = reinterpret_cast<CUfunction>(m);
    return CUDA_SUCCESS;
  };
  a.cuLaunchKernel = [](CUfunction f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        CUstream stream, void** parameters, void**) {
    FAKE("cuLaunchKernel");
    enqueue(
        stream, current->kernel ? current->kernel(f, parameters) : [] {});
    return CUDA_SUCCESS;
  };
  a.cuGetErrorName = get_name;
  a.cuGetErrorString = [](CUresult, const char** text) {
    *text = "as the test wanted";
    return CUDA_SUCCESS;
  };
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
