// The OpenMP runtime that oneDNN calls.
#pragma once
#include <string>

namespace tutti::onednn {

/// The environment variable by which the user tunes the runtime's own threads; "": none does.
std::string tuned_by();

/// oneDNN's library calls an OpenMP runtime, whose threads spin and sleep as environment variables say. Here its calls
/// go to the threads of kernels/cpu/team.h, so that there is one set of threads, which adapts to other work. Where this
/// cannot be, or the user tunes the runtime's own threads (OMP_PLACES, OMP_PROC_BIND=true, variables GOMP_ and KMP_),
/// it is the other way round: our kernels run on the runtime's threads.
class OpenMp {
 public:
  /// Decides at the first call; throws nothing.
  static const OpenMp& get();

  /// Why the runtime's own threads are used; "": they are not.
  const std::string& why_not_ours() const { return why_not_; }
  /// Of the calling thread: how many threads oneDNN takes.
  void set_threads(int threads) const;
  int threads() const;

 private:
  OpenMp();
  std::string why_not_;
};

/// Sets that count while it lives, then puts the old one back.
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;

 private:
  int before_;
};

}  // namespace tutti::onednn
