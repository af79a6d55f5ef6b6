// A call of cuBLASLt or cuDNN as a step of a sequence.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <span>
#include <utility>

namespace tutti::cuda {

/// A call for fixed shapes; owns its descriptors.
class Call {
 public:
  virtual ~Call() = default;
  /// Enqueues (or, during stream capture, records) the call with buffers in the order of the launch. Throws Error.
  virtual void run(CUstream stream, std::span<const CUdeviceptr> buffers) const = 0;
  /// Called before the stream of an earlier run is destroyed: a library's handle must not keep it.
  virtual void leave_stream() const {}
  /// How many of the first buffers are only read; every other one counts as written. Calls of which no one writes what
  /// another touches may run side by side.
  virtual size_t inputs() const { return 0; }
  /// Whether it is a collective of a group of ranks: all of them keep one order, on a stream of their own.
  virtual bool collective() const { return false; }
};

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
