// A CUDA driver and an NVRTC that keep the rules of cuda.h without computing anything by themselves. Memory is the
// host's. Work waits in its stream until somebody synchronizes with it, and reads pinned host memory only then. What is
// captured becomes a graph of nodes and of the edges that streams and events make; launching it runs the nodes in any
// order that the edges leave open. Calls need a current context, a capture refuses what the driver refuses, and an
// error that the driver calls sticky is the answer to every later call. Any call can be made to fail.
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
  int most_threads = 1024;  ///< of a block, by what a function takes of the device
  double clock = 0;         ///< milliseconds, which work in the stream moves on and events record
  /// What a kernel computes with those parameters, which are gone when it runs; null: nothing.
  std::function<std::function<void()>(CUfunction, void** parameters)> kernel;
  /// Which of the nodes that may run now a graph runs next; null: the first captured one.
  std::function<size_t(const std::vector<size_t>& ready)> next;
  /// Which of so many streams runs a piece of its work after a call has put work into one; a larger number, or null:
  /// none.
  std::function<size_t(size_t streams)> meanwhile;
  unsigned char garbage = 0x5a;  ///< in fresh memory
  bool remembers = true;         ///< keeps `calls`

  // What it sees.
  std::vector<std::string> calls;
  size_t allocated = 0, live_modules = 0, live_graphs = 0, live_events = 0, live_streams = 0, compiled = 0;
  size_t graph_nodes = 0, graph_edges = 0;  ///< of the newest graph
  size_t idle_timings = 0;                  ///< timing events recorded in a stream with nothing to do
  size_t retained = 0;                      ///< of primary contexts, now
  std::vector<std::string> compile_options;
  size_t count(const std::string& call) const;
};

/// The state that the functions work on, fresh at every call; no context is current then.
State& reset();
State& state();
CudaApi cuda();
NvrtcApi nvrtc();

// ---- for fake libraries and for kernels of tests

/// Puts work into the stream, or into the graph that the stream is captured for. The legacy stream (null) runs it at
/// once. Fails as a launch does.
CUresult enqueue(CUstream stream, std::function<void()> work);
/// The same with work that may have to wait for another process: it is called until it returns true. `captured`:
/// whether it became part of a graph.
CUresult enqueue_waiting(CUstream stream, std::function<bool()> work, bool& captured);
/// The device goes on while the host does something else: each stream runs a piece of its work.
void go_on();
/// An allocation or a synchronization somewhere in a call: what a capture in a strict mode refuses and is lost by.
CUresult unsafe_call();
/// Whether a live context is current in this thread, and no sticky error is there; else the driver's answer.
CUresult usable();
/// What runs on the device breaks it: the answer to every call from now on.
void fault(CUresult sticky);
/// A context of another library or device, made current in this thread.
CUcontext foreign_context();

}  // namespace tutti::cuda::fake
