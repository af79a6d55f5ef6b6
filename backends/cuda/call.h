// A call of cuBLASLt or cuDNN as a step of a sequence.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "core/base/status.h"
#include "kernels/dialect/portable.h"

namespace tutti::cuda {

/// Bound to shapes; its descriptors live as long as it does.
class Call {
 public:
  virtual ~Call() = default;
  /// Enqueues (or records, while the stream captures) the call on buffers in the order of the dispatch. Throws Error.
  virtual void run(CUstream stream, std::span<const CUdeviceptr> buffers) const = 0;
  /// How many of the first buffers are only read; every other one counts as written. Calls of which no one writes what
  /// another touches may run side by side.
  virtual size_t inputs() const { return 0; }
};

/// A Work of one call on `buffers` buffers (inputs, then results), and a workspace of `workspace` bytes where that is
/// not 0.
inline dialect::Work work_of(std::shared_ptr<const Call> call, const char* name, size_t buffers, size_t workspace) {
  dialect::Work work;
  dialect::Dispatch d;
  d.name = name;
  if (workspace) {
    work.scratch_bytes = {workspace};
    ++buffers;
  }
  d.buffers.resize(buffers);
  std::iota(d.buffers.begin(), d.buffers.end(), 0);
  d.library = std::move(call);
  work.dispatches.push_back(std::move(d));
  return work;
}

/// Owns a descriptor of a C library.
template <class Handle, class Destroy>
class Owned {
 public:
  Owned(Handle handle, Destroy destroy) : handle_(handle), destroy_(destroy) {}
  Owned(Owned&& o) noexcept : handle_(std::exchange(o.handle_, nullptr)), destroy_(o.destroy_) {}
  ~Owned() {
    if (handle_) destroy_(handle_);
  }
  operator Handle() const { return handle_; }

 private:
  Handle handle_;
  Destroy destroy_;
};

}  // namespace tutti::cuda
