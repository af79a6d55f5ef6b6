// A session on a device: one queue, the named states, and the programs compiled for it. Wraps the plugin's C calls;
// every error is thrown as tutti::Error naming the device.
#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/runtime/registry.h"

namespace tutti {

class Session;

/// The time of one kernel of a run, on the device's clock (TuttiNodeTime).
struct TUTTI_API KernelTime {
  uint32_t node = TUTTI_NONE;           ///< of the program; of fused nodes the first; NONE: a copy made by the plugin
  uint64_t start = 0, nanoseconds = 0;  ///< relative to the start of the run's first kernel
  std::string kernel, reason;           ///< reason: who declined the node before and why, or ""
  std::vector<uint32_t> others = {};    ///< first nodes of further kernels that share the launch
};

/// Receives a state during a run: its index among the watched ones, and its memory on the host, which the rest of the
/// run does not write.
using Ready = std::function<void(size_t state, const std::byte* data)>;

/// Exchanges the value of a node "tutti.exchange" with other processes, during a run.
using ExchangeValue = std::function<void(int64_t number, std::span<std::byte> value)>;

/// One compiled program. Must not outlive its session.
class TUTTI_API Executable {
 public:
  Executable(Executable&& other) noexcept;
  Executable& operator=(Executable&&) = delete;
  ~Executable();
  /// The bytes that prepare() allocates; exact.
  const TuttiMemory& memory() const { return memory_; }
  uint64_t planned_bytes() const;
  void prepare();
  /// Host memory for the next run's feeds, one pointer per feed in program order. Waits for a free slot.
  std::vector<void*> stage();
  /// Enqueues one step and returns its ticket.
  uint64_t run();
  /// The times of the last run's kernels, ordered by start; waits for the run. Before the first run: the kernels that a
  /// run starts, in order, with zero times. Throws Error(invalid) if compile was called without `profiled`.
  std::vector<KernelTime> times();
  /// From now on, run() calls `ready` with each of these states as soon as the run has its final value; run() rethrows
  /// what it throws. Returns false if the plugin cannot. After prepare().
  bool watch(const std::vector<std::string>& states, Ready ready);
  /// From now on, run() calls `exchange` at each node "tutti.exchange", in their order; run() rethrows what it throws.
  /// Returns false if the plugin cannot. After prepare().
  bool connect(ExchangeValue exchange);
  /// Makes run_and_sum() sum each of these groups of states over the ranks of the session's group (Session::join), as
  /// soon as the run has their final values. All ranks call it. Returns false if this program cannot. After prepare().
  bool prepare_sums(const std::vector<std::vector<std::string>>& groups);
  /// Enqueues one step with its sums, on all ranks, and returns its ticket.
  uint64_t run_and_sum();

 private:
  friend class Session;
  struct Watch {
    Ready ready;
    std::exception_ptr thrown;
  };
  struct Connection {
    ExchangeValue exchange;
    std::exception_ptr thrown;
  };
  Executable(Session* session, TuttiExecutable* handle, TuttiMemory memory, std::vector<size_t> feed_bytes);
  Session* session_;
  TuttiExecutable* handle_;
  TuttiMemory memory_;
  std::vector<size_t> feed_bytes_;
  uint64_t last_run_ = 0, run_before_ = 0;  // tickets
  std::unique_ptr<Watch> watch_;
  std::unique_ptr<Connection> connection_;
};

/// For one node of a checked program: accepted, or the reason why not.
struct TUTTI_API Verdict {
  bool accepted = false;
  std::string reason;
};

/// "fast" or "exact" as TuttiProgram::numerics. Throws Error(invalid) for another text.
TUTTI_API uint32_t parse_numerics(const std::string& text);

class TUTTI_API Session {
 public:
  /// `options` are those of the plugin ("threads" = "2"), and "numerics" = "fast" or "exact" (docs/EXACT.md), of the
  /// programs that this session compiles. Throws Error for unknown ones.
  explicit Session(const Device& device, const std::map<std::string, std::string>& options = {});
  Session(Registry& registry, const Device& device, const std::map<std::string, std::string>& options = {});
  ~Session();
  Session(const Session&) = delete;

  const Device& device() const { return device_; }
  /// TUTTI_FAST or TUTTI_EXACT: TuttiProgram::numerics of the programs for this session.
  uint32_t numerics() const { return numerics_; }
  std::vector<Verdict> check(const TuttiProgram& program);
  /// Throws Error(declined) listing nodes and reasons if the device cannot run the program. `tuning_bytes`: device
  /// memory that the plugin may use to time kernels while it compiles. `profiled`: the executable records kernel times;
  /// throws Error(declined) if the plugin cannot.
  Executable compile(const TuttiProgram& program, uint64_t tuning_bytes = 0, bool profiled = false);
  /// Whether the plugin can record kernel times.
  bool profiles() const;
  /// Waits until that run is done; throws errors of all runs up to it.
  void wait(uint64_t ticket);
  /// Bytes that the session holds on the device: now, and at most so far. Counted by the plugin.
  uint64_t used_bytes();
  uint64_t peak_bytes();
  /// Copies a whole state, row-major. Throws Error if the name is unknown or the size differs.
  void read(const std::string& state, void* to, size_t bytes);
  void write(const std::string& state, const void* from, size_t bytes);
  /// A handle to the state in the device's own interface, valid until this session ends. Earlier runs are ordered
  /// before the caller's use of it. Throws Error(declined) if the device does not share its states.
  TuttiNativeState native(const std::string& state);
  /// Frees a state that no executable has. False if the device keeps states until this session ends.
  bool forget(const std::string& state);

  // ---- a group of ranks whose devices add up among themselves (TuttiCollective, TuttiSums)

  /// The name of a group, for join().
  using GroupId = std::array<uint8_t, 128>;
  /// Called while this rank waits for work of the group, with the time since it waits: throws if another rank is gone.
  using Company = std::function<void(std::chrono::steady_clock::time_point begun)>;

  /// The library for groups and its version: what all ranks must have in common. Throws Error(declined) with the reason
  /// why the session cannot join a group.
  std::string group_library();
  /// The name of a new group, which one rank hands to all.
  GroupId unique_id();
  /// Joins a group of `ranks`; returns when all have joined. From then on, no call waits for the device without
  /// `company`. If that throws while ranks join, the session cannot be used any more, and is never closed.
  void join(const GroupId& id, uint32_t rank, uint32_t ranks, Company company);
  /// All ranks leave, behind all work so far.
  void leave();
  /// Ends this rank's part at once, without the others; then no call about runs and states succeeds.
  void abandon();
  /// Enqueues sums of states over the ranks, in place.
  void all_reduce(const std::vector<std::string>& states);
  /// Enqueues copies of rank `root`'s states to all others.
  void broadcast(const std::vector<std::string>& states, uint32_t root);

 private:
  friend class Executable;
  /// wait() in a group. If the company throws, the group's work on this rank is ended.
  void wait_in_company(uint64_t ticket);
  /// In a group, waits for all work so far: what comes next would wait for it without company.
  void settle();
  /// Calls the plugin; throws Error("device: doing: message") unless it returns TUTTI_OK.
  template <class F>
  void call(const std::string& doing, F&& f, const TuttiProgram* program = nullptr) const;
  [[noreturn]] void fail(int32_t code, TuttiError& error, const std::string& doing, const TuttiProgram* program) const;
  Device device_;
  uint32_t numerics_ = TUTTI_FAST;
  const TuttiPlugin* table_ = nullptr;
  TuttiSession* handle_ = nullptr;
  Company company_;        // of a group
  bool given_up_ = false;  // a thread is still in join()
};

}  // namespace tutti
