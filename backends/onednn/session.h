// A session on the CPU: runs are finished when run returns, so waiting never waits.
#pragma once
#include "kernels/cpu/team.h"
#include "sdk/memory.h"
#include "sdk/plugin.h"

namespace tutti::onednn {

/// What a session's executables share. The meter comes first: buffers must not outlive it.
struct Shared {
  explicit Shared(int threads) : threads(threads), cpus(kernels::cpus_to_bind(threads)) {}
  sdk::Meter meter;
  sdk::HostStates states;
  uint64_t tickets = 0;
  int threads;
  std::vector<int> cpus;  // to bind them to
  sdk::Host host;
};

std::unique_ptr<sdk::Session> make_session(int threads, const sdk::Host& host);

}  // namespace tutti::onednn
