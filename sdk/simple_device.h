// A minimal device interface: allocate, copy, build kernels, launch. plugins/template is an example.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sdk/driver.h"

namespace tutti::sdk {

/// A non-empty part of an allocation of a SimpleDevice.
struct Part {
  uint64_t memory = 0;  ///< result of allocate
  uint64_t offset = 0, bytes = 0;
};

/// A device with synchronous calls; launch, run_library and copy may also enqueue work in order if finish waits for it.
/// make_driver guarantees that calls do not overlap, though they come from two threads, and that arguments are valid.
/// Calls throw tutti::Error on failure; a failed launch or copy ends the session.
class SimpleDevice {
 public:
  virtual ~SimpleDevice() = default;
  virtual const Traits& traits() const = 0;

  /// Allocates memory aligned to Traits::alignment. Returns a non-zero id chosen by the device (an address, an index +
  /// 1), or 0 if there is not enough memory.
  virtual uint64_t allocate(uint64_t bytes) = 0;
  virtual void release(uint64_t memory) = 0;

  virtual void write(const Part& to, const void* from) = 0;  ///< from host memory
  virtual void read(const Part& from, void* to) = 0;         ///< to host memory
  /// Copies between two parts of equal size that do not overlap; through the host unless overridden.
  virtual void copy(const Part& from, const Part& to);

  /// See Driver::build_all.
  virtual std::vector<KernelId> build_all(std::span<const KernelSource> sources,
                                          std::span<std::vector<std::byte>> caches) = 0;
  /// Runs groups[0] x groups[1] x groups[2] groups of work-items of a built kernel.
  virtual void launch(KernelId kernel, std::span<const Part> buffers, const std::array<uint32_t, 3>& groups) = 0;
  /// Runs a library call on the launch's buffers; `call` is the pointer made by Traits::library. Devices with a library
  /// must override it; the default throws an error.
  virtual void run_library(const void* call, std::span<const Part> buffers);
  /// Waits for all enqueued work and throws its errors. Called before write and read.
  virtual void finish() {}
};

/// Wraps a device as a Driver with an in-order queue in a worker thread. Enforces the traits' memory limit, records and
/// enqueues sequences, and reports asynchronous errors in the next wait, naming the launch. Throws Error(invalid) for
/// traits without an identity.
std::unique_ptr<Driver> make_driver(std::unique_ptr<SimpleDevice> device);

}  // namespace tutti::sdk
