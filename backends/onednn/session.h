// A session on the CPU. run is synchronous, so wait returns immediately.
#pragma once
#include "kernels/cpu/team.h"
#include "sdk/memory.h"
#include "sdk/plugin.h"

namespace tutti::onednn {

/// State shared by a session's executables. The meter is the first member, because buffers must not outlive it.
struct Shared {
  explicit Shared(int threads) : threads(threads), cpus(kernels::cpus_to_bind(threads)) {}
  sdk::Meter meter;
  sdk::HostStates states;
  uint64_t tickets = 0;
  int threads;
  std::vector<int> cpus;  // CPUs to bind threads to
  sdk::Host host;
};

std::unique_ptr<sdk::Session> make_session(int threads, const sdk::Host& host);

}  // namespace tutti::onednn
