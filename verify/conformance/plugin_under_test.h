// The plugin as a child process holds it: its table and its sessions, called directly, and its device in the engine.
#pragma once
#include <memory>
#include <mutex>
#include <optional>

#include "core/abi/growth.h"
#include "core/runtime/device.h"
#include "verify/conformance/check.h"

namespace tutti::conformance {

/// What a call answered.
struct Answer {
  int32_t code = TUTTI_OK;
  uint32_t node = TUTTI_NONE;
  std::string message;
};
using Call = std::function<int32_t(TuttiError*)>;

/// "TUTTI_INVALID" or "code 99".
std::string code_name(int32_t code);
/// Calls with a fresh error. What is wrong with the answer itself goes to `f`: an unknown code, an error without code
/// or message, one that is not NUL-ended or not UTF-8, bytes written behind the error's size, an exception.
Answer ask(Findings& f, const std::string& what, const Call& call);
/// The call must succeed; throws Failure, as the check depends on it.
void succeed(Findings& f, const std::string& what, const Call& call);
/// The call must return one of these codes.
void refuse(Findings& f, const std::string& what, std::initializer_list<int32_t> codes, const Call& call);

/// Loads, initialises and, at its end, shuts down the plugin of one child. Nothing happens before it is asked for.
class PluginUnderTest {
 public:
  explicit PluginUnderTest(const Setup& setup);
  ~PluginUnderTest();
  PluginUnderTest(const PluginUnderTest&) = delete;

  const Setup& setup() const { return setup_; }
  /// The exported function. Throws Failure where the library has none.
  TuttiNegotiate entry();
  /// Its table for version TUTTI_ABI, not initialised.
  const TuttiPlugin& table();
  /// The table after init with a host whose struct is larger than this ABI's.
  const TuttiPlugin& plugin();
  /// What `devices` lists; its texts are valid until the next call.
  std::vector<TuttiDevice> devices(Findings& f);
  /// The index of the device that the checks use; asked for once, so that threads may call it after. Throws Unsupported
  /// where none can be used.
  uint32_t device(Findings& f);
  /// The same device found by the engine's registry. Not to be mixed with the calls above in one process.
  Device engine_device();
  const TuttiHost* host();
  /// Of the device that the checks use; "" until one was asked for.
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

/// A session by direct calls. Everything throws Failure where a call fails that must not.
class RawSession {
 public:
  RawSession(PluginUnderTest& plugin, Findings& f);
  ~RawSession();
  RawSession(const RawSession&) = delete;

  const TuttiPlugin& table() const { return table_; }
  TuttiSession* get() const { return session_; }
  /// Throws Unsupported with the plugin's reason when it declines.
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
