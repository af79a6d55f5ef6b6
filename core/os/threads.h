// Threads: waiting on a word, the processors that they may use, the time that they used.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace tutti::os {

using Word = std::atomic<uint32_t>;
static_assert(sizeof(Word) == 4 && Word::is_always_lock_free);

/// Sleeps while the word has this value; may return early.
void sleep_on(Word& word, uint32_t value);
/// Wakes threads of this process that sleep on the word: one, or all.
void wake_one(Word& word);
void wake_all(Word& word);

/// A set of processors.
struct CpuMask {
  static constexpr int most = 1024;
  std::array<uint64_t, most / 64> words = {};

  bool has(int cpu) const { return words[static_cast<size_t>(cpu) / 64] >> cpu % 64 & 1; }
  void add(int cpu) { words[static_cast<size_t>(cpu) / 64] |= uint64_t{1} << cpu % 64; }
  int count() const;
};
/// The processors that the calling thread may use. False if the system does not tell, or has more.
bool allowed_cpus(CpuMask& mask);
/// Binds the calling thread, and threads that it starts from then on (not on Windows), to these processors.
void bind_thread(const CpuMask& mask);

/// Whether destructors of a thread's own variables may join other threads. On Windows they run under the loader's lock,
/// which the end of every thread needs.
#ifdef _WIN32
constexpr bool joins_at_thread_end = false;
#else
constexpr bool joins_at_thread_end = true;
#endif

/// For debuggers; at most 15 characters are shown.
void name_thread(const std::string& name);
/// Other threads run first, if there are any.
void lower_thread_priority();

/// What the calling thread used so far. Windows does not count switches.
struct ThreadUse {
  int64_t cpu_ns = 0;
  int64_t waits = 0;      ///< times that it gave up its processor
  int64_t preempted = 0;  ///< times that the processor was taken from it
};
ThreadUse thread_use();

/// Number of forks up to this process since the first call; 0 on Windows.
unsigned forks();

}  // namespace tutti::os
