// What the fake driver's files share: everything that there is on the device and in its streams.
#pragma once
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda/fake_cuda.h"

namespace tutti::cuda::fake {

template <class T>
T handle(size_t n) {
  return reinterpret_cast<T>(n);
}
template <class T>
size_t number(T* handle) {
  return reinterpret_cast<size_t>(handle);
}

/// A piece of a stream's work: returns whether it is done, or waits for another process, and is called again.
using Work = std::function<bool()>;

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
  std::deque<Work> work;
};
struct Node {
  Work work;
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

/// Device memory, aligned as cuda.h promises.
struct Block {
  std::unique_ptr<char, void (*)(void*)> bytes{nullptr, std::free};
  size_t size = 0;
};
struct World {
  State state;
  std::map<CUdeviceptr, Block> blocks;
  std::map<void*, std::vector<char>> pinned;
  std::map<CUevent, Event> events;
  std::map<CUstream, Stream> streams;
  std::map<CUcontext, int> retained;
  std::optional<Capture> capturing;
  CUresult sticky = CUDA_SUCCESS;
};
extern World& the;
extern thread_local CUcontext current_context;

/// One call: seen, and failing where the test wants it or the device is broken.
CUresult call(const std::string& name);
/// One that needs a current context.
CUresult call_here(const std::string& name);
/// One that may wait for the device or change its memory.
CUresult call_unsafe(const std::string& name);

#define FAKE(name) \
  if (CUresult failed = call(name)) return failed
#define FAKE_HERE(name) \
  if (CUresult failed = call_here(name)) return failed
#define FAKE_UNSAFE(name) \
  if (CUresult failed = call_unsafe(name)) return failed

/// Runs all work of a stream, or of all.
void drain(CUstream stream);
void drain_all();
/// Breaks the capture that is going on, if any, and returns `why`.
CUresult invalidate(CUresult why);

void stream_functions(CudaApi& a);
void graph_functions(CudaApi& a);
void event_functions(CudaApi& a);

}  // namespace tutti::cuda::fake
