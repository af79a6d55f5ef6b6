// The OpenMP runtime used by oneDNN.
#pragma once
#include <string>

namespace tutti::onednn {

/// The environment variable with which the user tunes the runtime's threads; "": none.
std::string tuned_by();

/// oneDNN calls an OpenMP runtime, whose threads spin and sleep according to environment variables. Its calls are
/// redirected to the threads of kernels/cpu/team.h, so that there is a single set of threads, which adapts to other
/// load. If that is impossible, or the user tunes the runtime's threads (OMP_PLACES, OMP_PROC_BIND=true, GOMP_ and KMP_
/// variables), Tutti's kernels run on the runtime's threads instead.
class OpenMp {
 public:
  /// Decides at the first call. Does not throw.
  static const OpenMp& get();

  /// The reason for using the runtime's threads; "" if the team's threads are used.
  const std::string& why_not_ours() const { return why_not_; }
  /// Number of oneDNN's threads for the calling thread.
  void set_threads(int threads) const;
  int threads() const;

 private:
  OpenMp();
  std::string why_not_;
};

/// Sets the number of threads during its lifetime.
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;

 private:
  int before_;
};

}  // namespace tutti::onednn
