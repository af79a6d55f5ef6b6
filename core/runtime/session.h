// A session on a device: one queue, the named state, and the programs compiled for it. Wraps the plugin's C calls;
// every error arrives as tutti::Error naming the device.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/runtime/registry.h"

namespace tutti {

class Session;

/// One compiled program. Must not outlive its session.
class Executable {
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

 private:
  friend class Session;
  Executable(Session* session, TuttiExecutable* handle, TuttiMemory memory, size_t feeds);
  Session* session_;
  TuttiExecutable* handle_;
  TuttiMemory memory_;
  size_t feeds_;
};

/// Per node of a checked program: accepted or the reason why not.
struct Verdict {
  bool accepted = false;
  std::string reason;
};

class Session {
 public:
  /// `options` are the plugin's ("threads" = "2"). Throws Error for one it does not know.
  explicit Session(const Device& device, const std::map<std::string, std::string>& options = {});
  Session(Registry& registry, const Device& device, const std::map<std::string, std::string>& options = {});
  ~Session();
  Session(const Session&) = delete;

  const Device& device() const { return device_; }
  std::vector<Verdict> check(const TuttiProgram& program);
  /// Throws Error(declined) listing nodes and reasons when the device cannot run it.
  Executable compile(const TuttiProgram& program);
  void wait(uint64_t ticket);
  uint64_t used_bytes();
  uint64_t peak_bytes();
  /// Whole states, row-major. Throws Error when the name is unknown or the size differs.
  void read(const std::string& state, void* to, size_t bytes);
  void write(const std::string& state, const void* from, size_t bytes);

 private:
  friend class Executable;
  void expect(int32_t code, const TuttiError& error, const char* doing) const;
  Device device_;
  const TuttiPlugin* table_ = nullptr;
  TuttiSession* handle_ = nullptr;
};

}  // namespace tutti
