// A session on the CPU. run is synchronous, so wait returns immediately.
#pragma once
#include "backends/cpu/library.h"
#include "kernels/cpu/team.h"
#include "sdk/host_session.h"

namespace tutti::cpu {

/// State shared by a session's executables.
struct Shared : sdk::HostShared {
  Shared(const Library& library, int threads)
      : library(library), threads(threads), cpus(kernels::cpus_to_bind(threads)) {}
  const Library& library;
  int threads;
  std::vector<int> cpus;  // CPUs to bind threads to
  sdk::Host host;
};

std::unique_ptr<sdk::Session> make_session(const Library& library, int threads, const sdk::Host& host);

}  // namespace tutti::cpu
