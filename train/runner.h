// Runs graphs on a device: whole where the device accepts every node, else (where that is allowed) in parts, with the
// declined nodes on the CPU. Keeps track of where states live and of planned memory.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/runtime/session.h"
#include "data/host_tensor.h"
#include "graph/lower/compile.h"
#include "graph/lower/cost_estimate.h"
#include "graph/lower/split.h"

namespace tutti {

/// Device memory that a plugin may use to measure kernels while a run's graphs compile.
constexpr uint64_t tuning_bytes = uint64_t{1} << 30;

/// What becomes of nodes that the device declines and that have no decomposition.
enum class Fallback {
  none,  ///< an error that lists them all
  cpu,   ///< they run on the CPU: on the best other device of kind cpu that accepts them, else on the reference
};

/// What runs elsewhere than on the device, and what that costs.
struct TUTTI_API FallbackReport {
  std::set<std::string> devices;   ///< where: ids
  std::vector<std::string> nodes;  ///< "matmul(f64[2, 3], f64[3, 4]) at fc1 on reference:0: REASON", equal ones once
  uint64_t bytes_per_step = 0;     ///< copied through the host
};

class Runner;
class Profiler;

/// A graph (a training step, an evaluation step, an initialization) compiled for a runner, which it must not outlive.
class TUTTI_API CompiledGraph {
 public:
  /// Writes a feed of the graph into host memory; called once or more per feed and run.
  using Fill = std::function<void(const std::string& feed, void* memory)>;
  ~CompiledGraph();
  CompiledGraph(const CompiledGraph&) = delete;
  /// Allocates what was planned.
  void prepare();
  /// Enqueues one run and returns its ticket; a run in parts is done when this returns.
  uint64_t run(const Fill& fill);
  /// The same with a tensor for every feed. Throws Error for one that is missing, unknown, or of another type.
  uint64_t run(const HostTensors& feeds);
  uint64_t run(const HostViews& feeds);
  const FallbackReport& fallback() const { return fallback_; }
  const CostEstimate& cost() const { return cost_; }  ///< of one run

 private:
  friend class Runner;
  struct Compiled {
    size_t place = 0;
    Executable executable;
    std::vector<std::string> feeds;
    std::vector<Carried> carried_feeds, results;
    size_t profiled = 0;  // the profiler's number of it
  };
  CompiledGraph(Runner& runner, Profiler* profiler) : runner_(runner), profiler_(profiler) {}
  uint64_t run_part(Compiled& part, const Fill& fill);
  Runner& runner_;
  Profiler* profiler_;  // or null
  std::map<std::string, TensorType> feeds_;
  std::vector<Compiled> parts_;
  std::vector<Split::Access> before_, after_;
  std::vector<TensorType> value_types_;  // what the host carries
  std::vector<std::vector<std::byte>> values_;
  FallbackReport fallback_;
  CostEstimate cost_;
  bool prepared_ = false;
};

/// A session on the device, and one on each CPU device that takes over nodes.
class TUTTI_API Runner {
 public:
  /// `options` are the device's plugin's.
  explicit Runner(const Device& device, const std::map<std::string, std::string>& options = {},
                  Fallback fallback = Fallback::none);
  ~Runner();

  const Device& device() const;
  /// Whether the device itself runs the whole graph.
  bool accepts(const Graph& g);
  /// Throws Error(declined) listing every node that no allowed device runs. With Fallback::cpu, what runs elsewhere is
  /// logged as a warning of the topic "fallback". Where there is a `profiler`, the graph's kernels keep their times,
  /// for it to ask; throws Error(declined) where a plugin cannot. It must outlive the graph.
  std::unique_ptr<CompiledGraph> compile(const Graph& g, Profiler* profiler = nullptr);
  /// Until that run is done.
  void wait(uint64_t ticket);
  /// Whole states, wherever they live.
  void read(const std::string& state, void* to, size_t bytes);
  void write(const std::string& state, const void* from, size_t bytes);
  /// The same as tensors. Throws Error for a state that no compiled graph names, and for another type.
  HostTensor read(const std::string& state);
  void write(const std::string& state, const HostTensor& value) { write(state, view(value)); }
  void write(const std::string& state, const HostView& value);
  /// Its type, and where it lies on the device (see Session::native). Throws Error as read does, and Error(declined).
  std::pair<TensorType, TuttiNativeState> native(const std::string& state);
  uint64_t peak_bytes();           ///< counted by the plugins
  uint64_t planned_bytes() const;  ///< at most, over all prepared graphs
  /// Throws Error(internal) naming the plugin that did not use exactly what it planned. Graphs must have been prepared
  /// in the order in which they were compiled.
  void check_memory();

 private:
  friend class CompiledGraph;
  struct Place;
  std::unique_ptr<CompiledGraph> compile_parts(const Graph& g, Profiler* profiler);
  std::unique_ptr<CompiledGraph> in_parts(const Graph& g, std::vector<Declined> declined, Profiler* profiler);
  std::vector<size_t> places_for(const Graph& g, std::vector<Declined>& declined, FallbackReport& report);
  bool find_place(const Graph& node, size_t& place, std::string& reasons);
  void add_part(CompiledGraph& to, size_t place, std::unique_ptr<const Lowered> lowered);
  bool open_candidate();
  Session& home(const std::string& state);
  Fallback fallback_;
  std::vector<std::unique_ptr<Place>> places_;  // the device first
  std::vector<Device> candidates_;              // further CPU devices, not opened yet
  std::string not_opened_;                      // candidates that could not be: "; ID: REASON" each
  std::map<std::string, size_t> homes_;         // with a fallback: the place of every state
  std::map<std::string, TensorType> states_;    // of all compiled graphs
  size_t splits_ = 0;
};

/// One run of a graph on a device: `inputs` has every feed and, where they are not to be zero, states; the result has
/// every state afterwards, outputs (states without a value before) among them. Throws Error for an input that the graph
/// does not know, that is missing, or of another type, and Error(declined) as Runner::compile does.
TUTTI_API HostTensors run(const Graph& g, const Device& device, const HostTensors& inputs);

}  // namespace tutti
