// Sessions whose device memory is host memory, and whose runs have ended when run() returns.
#pragma once
#include <string>
#include <utility>

#include "sdk/memory.h"
#include "sdk/plugin.h"

namespace tutti::sdk {

/// State shared by a session and its executables. The meter is the first member, because buffers must not outlive it.
struct HostShared {
  Meter meter;
  HostStates states;
  uint64_t tickets = 0;
};

/// A session but for check and compile. `Shared` is derived from HostShared.
template <class Shared>
class HostSession : public Session {
 public:
  template <class... Args>
  explicit HostSession(Args&&... args) : shared_(std::forward<Args>(args)...) {}

  void wait(uint64_t ticket, uint64_t) override {
    if (ticket > shared_.tickets)
      throw invalid("wait: ticket " + std::to_string(ticket) + " was never returned by run; the newest is " +
                    std::to_string(shared_.tickets));
  }

  void usage(uint64_t& now, uint64_t& peak) override {
    now = shared_.meter.now();
    peak = shared_.meter.peak();
  }

  void read(const std::string& state, void* to, size_t bytes) override { shared_.states.read(state, to, bytes); }
  void write(const std::string& state, const void* from, size_t bytes) override {
    shared_.states.write(state, from, bytes);
  }
  TuttiNativeState native(const std::string& state) override { return shared_.states.native(state); }
  void forget(const std::string& state) override { shared_.states.forget(state); }

 protected:
  Shared shared_;
};

}  // namespace tutti::sdk
