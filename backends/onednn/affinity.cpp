#include "backends/onednn/affinity.h"

#include <omp.h>

#include <cstdlib>

namespace tutti::onednn {
namespace {

void bind_this_thread(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
}

/// For how many threads the workers of this calling thread are bound.
thread_local int workers_bound = 0;

}  // namespace

Affinity::Affinity(int threads) {
  cpu_set_t allowed;
  if (threads < 2 || std::getenv("OMP_PROC_BIND") || std::getenv("GOMP_CPU_AFFINITY") || std::getenv("OMP_PLACES"))
    return;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) != threads) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) cpus_.push_back(cpu);
}

Affinity::Scope::Scope(const Affinity& affinity) {
  const std::vector<int>& cpus = affinity.cpus_;
  if (cpus.empty() || sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  bound_ = true;
  bind_this_thread(cpus[0]);
  auto threads = static_cast<int>(cpus.size());
  if (workers_bound == threads) return;
#pragma omp parallel num_threads(threads)
  if (int k = omp_get_thread_num(); k > 0) bind_this_thread(cpus[static_cast<size_t>(k)]);
  workers_bound = threads;
}

Affinity::Scope::~Scope() {
  if (bound_) sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace tutti::onednn
