// The plugin in a child process: direct calls of its table and sessions, and its device in the engine.
#pragma once
#include <memory>
#include <mutex>
#include <optional>

#include "core/abi/growth.h"
#include "core/runtime/device.h"
#include "verify/conformance/check.h"

namespace tutti::conformance {

/// Result of a call.
struct Answer {
  int32_t code = TUTTI_OK;
  uint32_t node = TUTTI_NONE;
  std::string message;
};
using Call = std::function<int32_t(TuttiError*)>;

/// "TUTTI_INVALID" or "code 99".
std::string code_name(int32_t code);
/// Calls with a fresh error struct. Adds problems of the answer itself to `f`: an unknown code, an error without code
/// or message, a message that is not NUL-terminated or not UTF-8, writes beyond the error's size, an exception.
Answer ask(Findings& f, const std::string& what, const Call& call);
/// The call must succeed; throws Failure otherwise.
void succeed(Findings& f, const std::string& what, const Call& call);
/// The call must return one of these codes.
void refuse(Findings& f, const std::string& what, std::initializer_list<int32_t> codes, const Call& call);

/// Loads and initialises the plugin on demand, and shuts it down in the destructor.
class PluginUnderTest {
 public:
  explicit PluginUnderTest(const Setup& setup);
  ~PluginUnderTest();
  PluginUnderTest(const PluginUnderTest&) = delete;

  const Setup& setup() const { return setup_; }
  /// The exported function. Throws Failure if the library has none.
  TuttiNegotiate entry();
  /// The plugin's table for version TUTTI_ABI, not initialised.
  const TuttiPlugin& table();
  /// The table after init with a host struct larger than this ABI's.
  const TuttiPlugin& plugin();
  /// The result of `devices`; its strings are valid until the next call.
  std::vector<TuttiDevice> devices(Findings& f);
  /// The index of the device for the checks; determined once, so that threads may call it afterwards. Throws
  /// Unsupported if no device is usable.
  uint32_t device(Findings& f);
  /// The same device from the engine's registry. Do not mix it with the calls above in one process.
  Device engine_device();
  const TuttiHost* host();
  /// Name of the device for the checks; "" before the first call of device().
  const std::string& device_name() const { return device_name_; }

 private:
  struct Host;
  Setup setup_;
  void* library_ = nullptr;
  std::optional<TuttiPlugin> table_;
  bool ready_ = false;
  std::optional<uint32_t> device_;
  std::string device_name_;
};

/// A session with direct calls. All methods throw Failure if a call fails that must succeed.
class RawSession {
 public:
  RawSession(PluginUnderTest& plugin, Findings& f);
  ~RawSession();
  RawSession(const RawSession&) = delete;

  const TuttiPlugin& table() const { return table_; }
  TuttiSession* get() const { return session_; }
  /// Throws Unsupported with the plugin's reason if it declines.
  TuttiExecutable* compile(const TuttiProgram& program, TuttiMemory* memory = nullptr);
  void prepare(TuttiExecutable* x);
  std::vector<void*> stage(TuttiExecutable* x, size_t feeds);
  uint64_t run(TuttiExecutable* x);
  void wait(uint64_t ticket);
  uint64_t used();
  uint64_t peak();
  std::vector<float> read(const std::string& state, size_t count);
  void write(const std::string& state, const std::vector<float>& values);

 private:
  Findings& f_;
  const TuttiPlugin& table_;
  TuttiSession* session_ = nullptr;
};

}  // namespace tutti::conformance
