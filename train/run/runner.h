// Runs graphs on a device: whole if the device accepts every node, else (if fallback is allowed) in parts, with the
// declined nodes on the CPU. Keeps track of which device holds each state, and of planned memory.
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

/// Handling of nodes that the device declines and that have no decomposition.
enum class Fallback {
  none,  ///< an error that lists them all
  cpu,   ///< they run on the CPU: on the best other device of kind cpu that accepts them, else on the reference
};

/// "none" or "cpu". Throws Error(invalid) for another text.
TUTTI_API Fallback parse_fallback(const std::string& text);

/// Nodes that run on fallback devices, and the copies that this requires.
struct TUTTI_API FallbackReport {
  std::set<std::string> devices;   ///< ids of the fallback devices
  std::vector<std::string> nodes;  ///< "matmul(f64[2, 3], f64[3, 4]) at fc1 on reference:0: REASON", without duplicates
  uint64_t bytes_per_step = 0;     ///< bytes copied through the host
};

class Runner;
class Profiler;

/// A graph (a training step, an evaluation step, an initialization) compiled for a runner, which it must not outlive.
class TUTTI_API CompiledGraph {
 public:
  /// Writes a feed of the graph into host memory; called once or more per feed and run.
  using Fill = std::function<void(const std::string& feed, void* memory)>;
  /// Waits for the last run.
  ~CompiledGraph();
  CompiledGraph(const CompiledGraph&) = delete;
  /// Allocates the planned memory.
  void prepare();
  /// Enqueues one run and returns its ticket; a run in parts is done when this returns.
  uint64_t run(const Fill& fill);
  /// Runs with a tensor for every feed. Throws Error for a feed that is missing, unknown, or of another type.
  uint64_t run(const HostTensors& feeds);
  uint64_t run(const HostViews& feeds);
  /// See Executable::watch; false also if it runs in parts. After prepare().
  bool watch(const std::vector<std::string>& states, Ready ready);
  /// See Executable::connect; false also if it runs in parts. After prepare().
  bool connect(ExchangeValue exchange);
  /// See Executable::prepare_sums and run_and_sum; false also if it runs in parts. After prepare().
  bool prepare_sums(const std::vector<std::vector<std::string>>& groups);
  bool sums_prepared() const { return sums_prepared_; }
  uint64_t run_and_sum(const Fill& fill);
  /// The numbers of the exchanges of a run, in their order.
  const std::vector<int64_t>& exchanges() const { return exchanges_; }
  const FallbackReport& fallback() const { return fallback_; }
  const CostEstimate& cost() const { return cost_; }  ///< of one run

 private:
  friend class Runner;
  struct Compiled {
    size_t place = 0;
    Executable executable;
    std::vector<std::string> feeds;
    std::vector<Carried> carried_feeds, results;
    size_t profiled = 0;  // the profiler's index of the program
  };
  CompiledGraph(Runner& runner, Profiler* profiler) : runner_(runner), profiler_(profiler) {}
  void fill_feeds(Compiled& part, const Fill& fill);
  uint64_t run_part(Compiled& part, const Fill& fill);
  Runner& runner_;
  Profiler* profiler_;  // or null
  std::map<std::string, TensorType> feeds_;
  std::vector<Compiled> parts_;
  std::vector<Split::Access> before_, after_;
  std::vector<TensorType> value_types_;  // values copied through the host
  std::vector<std::vector<std::byte>> values_;
  FallbackReport fallback_;
  CostEstimate cost_;
  std::vector<int64_t> exchanges_;
  uint64_t last_ = 0;  // ticket of the last run
  bool prepared_ = false, sums_prepared_ = false;
};

/// A session on the device, and one on each CPU device that runs declined nodes.
class TUTTI_API Runner {
 public:
  /// `options` are options of the device's plugin.
  explicit Runner(const Device& device, const std::map<std::string, std::string>& options = {},
                  Fallback fallback = Fallback::none);
  ~Runner();

  const Device& device() const;
  /// The device's session.
  Session& session();
  /// Whether the device itself runs the whole graph.
  bool accepts(const Graph& g);
  /// Throws Error(declined) that lists every node that no allowed device runs. With Fallback::cpu, nodes on fallback
  /// devices are logged as a warning of the topic "fallback". With a `profiler`, kernel times are recorded and reported
  /// to it; throws Error(declined) if a plugin does not support that. The profiler must outlive the graph.
  std::unique_ptr<CompiledGraph> compile(const Graph& g, Profiler* profiler = nullptr);
  /// Waits until the run is done.
  void wait(uint64_t ticket);
  /// Copies a whole state from or to the device that holds it. With exact numerics a NaN is read as 0x7fc00000.
  void read(const std::string& state, void* to, size_t bytes);
  void write(const std::string& state, const void* from, size_t bytes);
  /// The same with tensors. Throws Error for a state unknown to all compiled graphs, and for another type.
  HostTensor read(const std::string& state);
  void write(const std::string& state, const HostTensor& value) { write(state, view(value)); }
  void write(const std::string& state, const HostView& value);
  /// A state's type and device memory (see Session::native). Throws Error like read(), and Error(declined).
  std::pair<TensorType, TuttiNativeState> native(const std::string& state);
  /// Frees a state that no compiled graph has. False if the device keeps states as long as the runner.
  bool forget(const std::string& state);
  uint64_t peak_bytes();           ///< counted by the plugins
  uint64_t planned_bytes() const;  ///< peak over all prepared graphs
  /// Throws Error(internal) that names a plugin whose memory use differs from its plan. Graphs must have been prepared
  /// in the order of their compilation.
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
  std::vector<Device> candidates_;              // CPU devices for fallback, not opened yet
  std::string not_opened_;                      // candidates that failed to open: "; ID: REASON" each
  std::map<std::string, size_t> homes_;         // with a fallback: index in places_ of every state
  std::map<std::string, TensorType> states_;    // states of all compiled graphs
  size_t splits_ = 0;
};

/// Runs a graph once on a device. `inputs` contains every feed, and states that should not start as zero. Returns every
/// state after the run, including outputs (states without a previous value). Throws Error for an input that is unknown
/// to the graph, missing, or of another type, and Error(declined) like Runner::compile.
/// `options` are those of the session.
TUTTI_API HostTensors run(const Graph& g, const Device& device, const HostTensors& inputs,
                          const std::map<std::string, std::string>& options = {});

}  // namespace tutti
