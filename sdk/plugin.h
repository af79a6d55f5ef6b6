// C++ classes for plugins: derive from them, pass the plugin to `table`, export one function.
//
// Methods throw tutti::Error (NodeError for one node); the table converts this (and every other exception) to the ABI's
// error and code, so that no exception crosses the boundary. The table also checks arguments and the order of calls:
// stage and run require a successful prepare, programs with feeds are staged before each run, nodes with unknown
// features are declined, and executables are destroyed before their session.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/abi/tutti_exchange.h"
#include "core/abi/tutti_forget.h"
#include "core/abi/tutti_ready.h"
#include "core/abi/tutti_sums.h"
#include "core/base/status.h"
#include "sdk/program.h"

namespace tutti::sdk {

/// Time of one kernel of a run, see TuttiNodeTime; `start` may have any origin.
struct KernelTime {
  uint32_t node = TUTTI_NONE;
  uint64_t start = 0, nanoseconds = 0;
  std::string kernel, reason = {};
  std::vector<uint32_t> others = {};
};

/// Receives a state during a run: its index among the watched ones, and its memory.
using Ready = std::function<void(uint32_t state, const void* data)>;

/// Exchanges the result of a node "tutti.exchange" with other processes, during a run: see TuttiExchange.
using Exchange = std::function<void(uint64_t number, void* data, uint64_t bytes)>;

/// The name of a group of ranks (TuttiCollective).
using GroupId = std::array<uint8_t, 128>;

/// One compiled program. Destroyed by the ABI's `release`, or with its session.
class Executable {
 public:
  virtual ~Executable() = default;
  /// Exact bytes that prepare() will allocate; known once compiled.
  virtual TuttiMemory memory() const = 0;
  virtual void prepare() = 0;
  /// Host memory for the next run's feeds, in the order of the program's feed values.
  virtual void stage(std::span<void*> feeds) = 0;
  /// Enqueues one step; the ticket grows with every run of the session.
  virtual uint64_t run() = 0;
  /// Kernel times of the last run, ordered by `start`; waits for the run. Before the first run: the kernels that a run
  /// starts, with zero times. Called only if compile was given TUTTI_OPT_PROFILE. Throws Error(declined) unless
  /// overridden.
  virtual std::vector<KernelTime> times();
  /// From now on, run() calls `ready` with the index and memory of each of these states as soon as the run has its
  /// final value, see TuttiReady. The names are states of the program, without duplicates. Throws Error(declined)
  /// unless overridden.
  virtual void watch(const std::vector<std::string>& states, Ready ready);
  /// From now on, run() calls `exchange` at each node "tutti.exchange". Throws Error(declined) unless overridden.
  virtual void connect(const Exchange& exchange);
  /// Prepares run_and_sum(), see TuttiSums: the groups of states are sums over the ranks after it. The names are states
  /// of the program, without duplicates. Throws Error(declined) unless overridden.
  virtual void prepare_sums(const std::vector<std::vector<std::string>>& groups);
  virtual uint64_t run_and_sum();
};

/// Receives the reason why node `node` is declined.
using Why = std::function<void(uint32_t node, const std::string& reason)>;

/// One device with one in-order queue and named states.
class Session {
 public:
  virtual ~Session() = default;
  /// Sets accepted[node] to 1 for every node that it can run and calls `why` for every other one.
  virtual void check(const Program& program, std::span<uint8_t> accepted, const Why& why) = 0;
  virtual std::unique_ptr<Executable> compile(Program program, const TuttiOptions& options) = 0;
  virtual void wait(uint64_t ticket, uint64_t timeout_ns) = 0;
  virtual void usage(uint64_t& now, uint64_t& peak) = 0;
  virtual void read(const std::string& state, void* to, size_t bytes) = 0;
  virtual void write(const std::string& state, const void* from, size_t bytes) = 0;
  /// A state's memory in terms of the device's native API (TuttiNative), ordered after all runs so far. Throws
  /// Error(declined) unless overridden.
  virtual TuttiNativeState native(const std::string& state);
  /// Frees a state that no executable has (TuttiForget). Throws Error(declined) unless overridden.
  virtual void forget(const std::string& state);

  // A group of ranks (TuttiCollective, TuttiSums). Each throws Error(declined) unless overridden.
  /// The library that carries it. Throws Error(declined) with the reason why the session cannot join one.
  virtual std::string group_library();
  virtual void join(const GroupId& id, uint32_t rank, uint32_t ranks);
  virtual void leave();
  virtual void all_reduce(const std::vector<std::string>& states);
  virtual void broadcast(const std::vector<std::string>& states, uint32_t root);
  /// Ends the group's work at once; later calls throw Error(device_lost).
  virtual void abandon();
  /// A ticket for all work so far.
  virtual uint64_t mark();
};

/// A device listed by the plugin.
struct Device {
  std::string name, driver, unusable, pci;
  std::array<uint8_t, 16> uuid = {};
  uint32_t kind = TUTTI_OTHER;
  uint64_t memory_total = 0, memory_free = 0;
};

/// The host's services: its log and its verified blob cache.
class Host {
 public:
  explicit Host(const TuttiHost* host = nullptr) : host_(host) {}
  void log(int level, const std::string& topic, const std::string& text) const;
  /// The blob, or empty if it does not exist. Calls the host twice: for the size (room 0), then for the bytes.
  std::vector<std::byte> cache_get(const std::string& key) const;
  void cache_put(const std::string& key, std::span<const std::byte> bytes) const;
  /// The host's extensions, for find_extension (core/abi/growth.h), or nullptr.
  const TuttiExt* extensions() const;

 private:
  const TuttiHost* host_;
};

using Options = std::map<std::string, std::string>;

class Plugin {
 public:
  virtual ~Plugin() = default;
  virtual const char* name() const = 0;
  virtual const char* version() const = 0;
  /// Whether executables report kernel times (tutti.profile).
  virtual bool profiles() const { return false; }
  /// Whether executables report states during a run (tutti.ready).
  virtual bool reports_ready() const { return false; }
  /// Whether executables run nodes "tutti.exchange" (tutti.exchange).
  virtual bool exchanges() const { return false; }
  /// Whether sessions join groups of ranks (tutti.collective, tutti.sums).
  virtual bool joins() const { return false; }
  /// The name of a new group. Throws Error(declined) unless overridden.
  virtual GroupId unique_id();
  virtual void init(Host host) { host_ = host; }
  virtual void shutdown() {}
  virtual std::vector<Device> devices() = 0;
  /// Throws Error(invalid) for an unknown index or option, listing the known ones.
  virtual std::unique_ptr<Session> open(uint32_t device, const Options& options) = 0;

 protected:
  Host host_;
};

/// Negotiates the version and returns the C table of this library's plugin, for the exported function. `make` is called
/// once, at the first successful negotiation. At most one plugin type per library.
const TuttiPlugin* table(uint32_t host_min, uint32_t host_max, uint32_t mine[2], Plugin* (*make)());

}  // namespace tutti::sdk
