// Threads that compute the parts of a region together. Each thread that begins regions has a team of its own, which
// lives as long as it does. A waiting thread spins for a bounded time, then sleeps; where the machine is crowded
// (crowd.h) it sleeps at once, and no thread is bound to a CPU.
#pragma once
#include <vector>

namespace tutti::kernels {

constexpr int most_threads = 1024;

/// Computes one part of a region.
using ComputePart = void (*)(void* context, int part);

/// Calls f for the parts 0 … parts - 1, each once, by any of the team's threads in any order; returns when all are
/// done. A part must not wait for another. Throws what a part threw, and Error(no_memory) where threads cannot be had.
/// Within a region: one after the other.
void run_parts(int parts, ComputePart f, void* context);

/// The same with all parts at the same time, part 0 by the caller between the two calls: parts may wait for each other,
/// with barrier() and otherwise. Within a region: one part alone. Parts must not throw.
void begin_region(int parts, ComputePart f, void* context);
void end_region();
/// Waits for all other parts of the region; nothing outside of one.
void barrier();

/// Of the calling thread: the part that it computes, of how many. 0 of 1 outside of regions.
struct Place {
  int part = 0, parts = 1;
};
Place place();
/// Whether it computes in a region of several parts.
bool in_region();

/// The most threads that all sessions may use: OMP_THREAD_LIMIT, else more than there are.
int thread_limit();

/// Replaces run_parts's threads by others, such as an OpenMP runtime's; null: back to the team's.
using Runner = void (*)(int parts, ComputePart f, void* context);
void set_runner(Runner runner);

/// The CPUs to bind that many threads to: one for each of the CPUs that this process may use. Empty where these are
/// more or fewer (schedulers may place threads better then), or where OMP_PROC_BIND is false.
std::vector<int> cpus_to_bind(int threads);

/// While it lives the calling thread computes: threads of its team are bound to `cpus`, itself to the first, for as
/// long as the machine is quiet. Schedulers that pack threads onto few CPUs (virtual machines, power saving) otherwise
/// leave one thread waiting for another that is not running. Then it gets its own CPUs back. `threads`: made now, so
/// that a lack of them throws here.
class ComputeScope {
 public:
  ComputeScope(int threads, const std::vector<int>& cpus);
  ~ComputeScope();
  ComputeScope(const ComputeScope&) = delete;

 private:
  bool entered_ = false;
};

}  // namespace tutti::kernels
