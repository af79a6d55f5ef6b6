// A session on the CPU. run is synchronous, so wait returns immediately.
#pragma once
#include "kernels/cpu/team.h"
#include "sdk/host_session.h"

namespace tutti::onednn {

/// State shared by a session's executables.
struct Shared : sdk::HostShared {
  explicit Shared(int threads) : threads(threads), cpus(kernels::cpus_to_bind(threads)) {}
  int threads;
  std::vector<int> cpus;  // CPUs to bind threads to
  sdk::Host host;
};

std::unique_ptr<sdk::Session> make_session(int threads, const sdk::Host& host);

}  // namespace tutti::onednn
