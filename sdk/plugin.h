// A plugin written as C++ classes: derive from these, hand the plugin to `table`, export one function.
//
// Methods throw tutti::Error (NodeError for one node); the table turns that (and every other exception) into the ABI's
// error and code, so that nothing is ever thrown across the boundary. The table also checks the arguments and the order
// of calls: stage and run come after a prepare that succeeded, a program with feeds is staged before each run, a node
// with something unknown is declined, and executables are destroyed before their session.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "sdk/program.h"

namespace tutti::sdk {

/// What one kernel of a run took: TuttiNodeTime, whose `start` may count from any moment.
struct KernelTime {
  uint32_t node = TUTTI_NONE;
  uint64_t start = 0, nanoseconds = 0;
  std::string kernel, reason = {};
};

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
  /// What the kernels of the last run took, in the order of `start`; waits for it. Asked after a run alone, and where
  /// compile was given TUTTI_OPT_PROFILE. Throws Error(declined) unless overridden.
  virtual std::vector<KernelTime> times();
};

/// Says why node `node` is declined.
using Why = std::function<void(uint32_t node, const std::string& reason)>;

/// One device, one in-order queue, the named state.
class Session {
 public:
  virtual ~Session() = default;
  /// Sets accepted[node] to 1 for every node it can run and calls `why` for every other.
  virtual void check(const Program& program, std::span<uint8_t> accepted, const Why& why) = 0;
  virtual std::unique_ptr<Executable> compile(Program program, const TuttiOptions& options) = 0;
  virtual void wait(uint64_t ticket, uint64_t timeout_ns) = 0;
  virtual void usage(uint64_t& now, uint64_t& peak) = 0;
  virtual void read(const std::string& state, void* to, size_t bytes) = 0;
  virtual void write(const std::string& state, const void* from, size_t bytes) = 0;
  /// Where a state lies, in the terms of the device's own interface (TuttiNative); all runs so far come before what its
  /// caller does there. Throws Error(declined) unless overridden.
  virtual TuttiNativeState native(const std::string& state);
};

/// A device as the plugin lists it.
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
  /// The blob, or empty: not there. Asks the host twice: for the size (room 0), then for the bytes.
  std::vector<std::byte> cache_get(const std::string& key) const;
  void cache_put(const std::string& key, std::span<const std::byte> bytes) const;

 private:
  const TuttiHost* host_;
};

using Options = std::map<std::string, std::string>;

class Plugin {
 public:
  virtual ~Plugin() = default;
  virtual const char* name() const = 0;
  virtual const char* version() const = 0;
  /// Whether executables tell their kernels' times (tutti.profile).
  virtual bool profiles() const { return false; }
  virtual void init(Host host) { host_ = host; }
  virtual void shutdown() {}
  virtual std::vector<Device> devices() = 0;
  /// Throws Error(invalid) for an index or option that does not exist, naming what does.
  virtual std::unique_ptr<Session> open(uint32_t device, const Options& options) = 0;

 protected:
  Host host_;
};

/// Negotiates and hands out the C table of the one plugin of this library: what the exported function returns. `make`
/// is called once, at the first successful negotiation. At most one plugin type per library.
const TuttiPlugin* table(uint32_t host_min, uint32_t host_max, uint32_t mine[2], Plugin* (*make)());

}  // namespace tutti::sdk
