// A CUDA driver and an NVRTC of functions that compute nothing by themselves: memory is the host's, streams run at
// once, launches are counted, and any call can be made to fail. What is captured becomes a graph of nodes and of the
// edges that streams and events make; launching it runs the nodes in any order that the edges leave open.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/api.h"

namespace tutti::cuda::fake {

struct State {
  // What a test sets.
  int devices = 1, driver_version = 13000, nvrtc_major = 13;
  int capability = 90;
  std::set<int> architectures = {75, 80, 86, 89, 90, 100};
  std::map<std::string, CUresult> failing;  ///< calls that give this result
  std::string compile_error;                ///< what NVRTC says; "": it compiles
  size_t memory = 1 << 20;
  double clock = 0;  ///< milliseconds, which work in the stream moves on and events record
  /// What a kernel computes with those parameters, which are gone when it runs; null: nothing.
  std::function<std::function<void()>(CUfunction, void** parameters)> kernel;
  /// Which of the nodes that may run now a graph runs next; null: the first captured one.
  std::function<size_t(const std::vector<size_t>& ready)> next;

  // What it sees.
  std::vector<std::string> calls;
  size_t allocated = 0, live_modules = 0, live_graphs = 0, live_events = 0, live_streams = 0, compiled = 0;
  size_t graph_nodes = 0, graph_edges = 0;  ///< of the newest graph
  std::vector<std::string> compile_options;
  size_t count(const std::string& call) const;
};

/// The state that the functions work on, fresh at every call.
State& reset();
State& state();
CudaApi cuda();
/// What a fake library puts into the stream: it runs now or, while the stream is captured, when the graph does.
void enqueue(CUstream stream, std::function<void()> work);
NvrtcApi nvrtc();

}  // namespace tutti::cuda::fake
