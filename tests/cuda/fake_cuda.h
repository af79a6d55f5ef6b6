// A CUDA driver and an NVRTC of functions that compute nothing: memory is the host's, streams run at once, launches are
// counted, and any call can be made to fail.
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

  // What it sees.
  std::vector<std::string> calls;
  size_t allocated = 0, live_modules = 0, live_graphs = 0, live_events = 0, compiled = 0;
  std::vector<std::string> compile_options;
  size_t count(const std::string& call) const;
};

/// The state that the functions work on, fresh at every call.
State& reset();
State& state();
CudaApi cuda();
/// What a fake library puts into the stream: it runs now or, while the stream is captured, when the graph does.
void enqueue(std::function<void()> work);
NvrtcApi nvrtc();

}  // namespace tutti::cuda::fake
