// A session on a device: one queue, the named state, and the programs compiled for it. Wraps the plugin's C calls;
// every error arrives as tutti::Error naming the device.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/runtime/registry.h"

namespace tutti {

class Session;

/// What one kernel of a run took, on the device's clock (TuttiNodeTime).
struct TUTTI_API KernelTime {
  uint32_t node = TUTTI_NONE;  ///< of the program; of several in one kernel the first; NONE: a copy of the plugin's own
  uint64_t start = 0, nanoseconds = 0;  ///< the first kernel of a run starts at 0
  std::string kernel, reason;           ///< what ran; who declined before and why, "" where the first took the node
};

/// One compiled program. Must not outlive its session.
class TUTTI_API Executable {
 public:
  Executable(Executable&& other) noexcept;
  Executable& operator=(Executable&&) = delete;
  ~Executable();
  /// What prepare() allocates; exact.
  const TuttiMemory& memory() const { return memory_; }
  uint64_t planned_bytes() const;
  void prepare();
  /// Host memory for the next run's feeds, one pointer per feed in program order. Waits for a free slot.
  std::vector<void*> stage();
  /// Enqueues one step and returns its ticket.
  uint64_t run();
  /// What the kernels of the last run took, in the order of their starts; waits for it. Throws Error(invalid) before
  /// the first run, and where compile was not asked to profile.
  std::vector<KernelTime> times();

 private:
  friend class Session;
  Executable(Session* session, TuttiExecutable* handle, TuttiMemory memory, std::vector<size_t> feed_bytes);
  Session* session_;
  TuttiExecutable* handle_;
  TuttiMemory memory_;
  std::vector<size_t> feed_bytes_;
};

/// Per node of a checked program: accepted or the reason why not.
struct TUTTI_API Verdict {
  bool accepted = false;
  std::string reason;
};

class TUTTI_API Session {
 public:
  /// `options` are the plugin's ("threads" = "2"). Throws Error for one it does not know.
  explicit Session(const Device& device, const std::map<std::string, std::string>& options = {});
  Session(Registry& registry, const Device& device, const std::map<std::string, std::string>& options = {});
  ~Session();
  Session(const Session&) = delete;

  const Device& device() const { return device_; }
  std::vector<Verdict> check(const TuttiProgram& program);
  /// Throws Error(declined) listing nodes and reasons when the device cannot run it.
  /// `tuning_bytes`: device memory that the plugin may use to measure kernels while it compiles. `profiled`: the
  /// executable keeps the times of its kernels; throws Error(declined) where the plugin cannot.
  Executable compile(const TuttiProgram& program, uint64_t tuning_bytes = 0, bool profiled = false);
  /// Whether it can.
  bool profiles() const;
  /// Waits until that run is done; errors of runs up to it arrive here.
  void wait(uint64_t ticket);
  /// Bytes that the session holds on the device now, and the most it ever held; counted by the plugin.
  uint64_t used_bytes();
  uint64_t peak_bytes();
  /// Whole states, row-major. Throws Error when the name is unknown or the size differs.
  void read(const std::string& state, void* to, size_t bytes);
  void write(const std::string& state, const void* from, size_t bytes);
  /// Where a state lies in the terms of the device's own interface, until this session ends. All runs so far come
  /// before what the caller does there. Throws Error(declined) where the device does not share it.
  TuttiNativeState native(const std::string& state);

 private:
  friend class Executable;
  /// Calls the plugin; throws Error("device: doing: message") unless it returns TUTTI_OK.
  template <class F>
  void call(const std::string& doing, F&& f, const TuttiProgram* program = nullptr) const;
  [[noreturn]] void fail(int32_t code, TuttiError& error, const std::string& doing, const TuttiProgram* program) const;
  Device device_;
  const TuttiPlugin* table_ = nullptr;
  TuttiSession* handle_ = nullptr;
};

}  // namespace tutti
