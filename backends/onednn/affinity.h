// Which CPU each OpenMP thread runs on.
#pragma once
#include <sched.h>

#include <vector>

namespace tutti::onednn {

/// A session that uses every CPU it may use gives each of its threads one of them: schedulers that pack threads onto
/// few CPUs (virtual machines, power saving) otherwise leave one thread spinning for another that is not running, at
/// milliseconds per parallel region. Nothing is bound where the user decided (OMP_PROC_BIND) or where CPUs are left.
class Affinity {
 public:
  explicit Affinity(int threads);

  /// Binds the calling thread while it lives, and its OpenMP workers for good; then gives the caller its CPUs back.
  class Scope {
   public:
    explicit Scope(const Affinity& affinity);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    bool bound_ = false;
    cpu_set_t before_;
  };

 private:
  std::vector<int> cpus_;  // one per thread; empty: nothing is bound
};

}  // namespace tutti::onednn
