#include "core/os/threads.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace tutti::os {
namespace {

constinit std::atomic<unsigned> forks_{0};

void wake(Word& word, int threads) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

cpu_set_t* set_of(CpuMask& mask) { return reinterpret_cast<cpu_set_t*>(mask.words.data()); }
static_assert(sizeof(cpu_set_t) == sizeof CpuMask{}.words);

}  // namespace

void sleep_on(Word& word, uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void wake_one(Word& word) { wake(word, 1); }
void wake_all(Word& word) { wake(word, INT_MAX); }

bool allowed_cpus(CpuMask& mask) {
  mask = {};
  return sched_getaffinity(0, sizeof mask.words, set_of(mask)) == 0;
}

void bind_thread(const CpuMask& mask) {
  CpuMask copy = mask;
  sched_setaffinity(0, sizeof copy.words, set_of(copy));
}

void name_thread(const std::string& name) { pthread_setname_np(pthread_self(), name.substr(0, 15).c_str()); }

void lower_thread_priority() { ::setpriority(PRIO_PROCESS, 0, 19); }  // on Linux of the thread

ThreadUse thread_use() {
  rusage r = {};
  getrusage(RUSAGE_THREAD, &r);
  timespec cpu = {};  // rusage's times have the resolution of a tick on some systems
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  return {int64_t{cpu.tv_sec} * 1'000'000'000 + cpu.tv_nsec, r.ru_nvcsw, r.ru_nivcsw};
}

unsigned forks() {
  static const int watched = pthread_atfork(nullptr, nullptr, [] { ++forks_; });
  static_cast<void>(watched);
  return forks_.load();
}

}  // namespace tutti::os
