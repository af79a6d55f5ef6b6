// Thread teams for parallel regions. Each thread that starts regions has its own team with the same lifetime. Waiting
// threads spin for a bounded time, then sleep; on a crowded machine (crowd.h) that time is short, and threads are not
// bound to CPUs.
#pragma once
#include <vector>

namespace tutti::kernels {

/// Computes one part of a region.
using ComputePart = void (*)(void* context, int part);

/// Calls f once for each part 0 … parts - 1, by any of the team's threads in any order; returns when all are done. A
/// part must not wait for another. Rethrows a part's exception; throws Error(no_memory) if threads cannot be created.
/// Within a region: runs the parts sequentially.
void run_parts(int parts, ComputePart f, void* context);

/// The same with all parts running concurrently, part 0 by the caller between the two calls: parts may wait for each
/// other, with barrier() or otherwise. Within a region: one part only. Parts must not throw.
void begin_region(int parts, ComputePart f, void* context);
void end_region();
/// Waits for all other parts of the region; no-op outside of a region.
void barrier();

/// The calling thread's part and the number of parts. 0 of 1 outside of regions.
struct Place {
  int part = 0, parts = 1;
};
Place place();
/// Whether the calling thread is in a region of several parts.
bool in_region();

/// Maximum number of threads of all sessions: OMP_THREAD_LIMIT, else most_threads.
int thread_limit();

/// Makes run_parts use other threads, such as an OpenMP runtime's; null: the team's.
using Runner = void (*)(int parts, ComputePart f, void* context);
void set_runner(Runner runner);

/// The CPUs to bind `threads` threads to, if the process may use exactly that many CPUs. Empty otherwise (the scheduler
/// may then place threads better), or if OMP_PROC_BIND is false.
std::vector<int> cpus_to_bind(int threads);

/// Marks the calling thread as computing during its lifetime. The team's threads are bound to `cpus`, the caller to the
/// first, while the machine is quiet: schedulers that pack threads onto few CPUs (virtual machines, power saving)
/// otherwise leave threads waiting for one that is not running. The destructor restores the caller's CPU affinity.
/// Creates `threads` threads immediately, so that failures are thrown here.
class ComputeScope {
 public:
  ComputeScope(int threads, const std::vector<int>& cpus);
  ~ComputeScope();
  ComputeScope(const ComputeScope&) = delete;

 private:
  bool entered_ = false;
};

}  // namespace tutti::kernels
