// The least that a device must offer: allocate, copy, build kernels, launch one. plugins/template is one of these.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sdk/driver.h"

namespace tutti::sdk {

/// A part of an allocation of a SimpleDevice, inside of it and not empty.
struct Part {
  uint64_t memory = 0;  ///< what allocate returned
  uint64_t offset = 0, bytes = 0;
};

/// A device whose calls have done their work when they return; launch, run_library and copy may also only enqueue it,
/// in order, where finish waits for it. Calls come one at a time, though from two threads, and with good arguments:
/// make_driver sees to that. They throw tutti::Error for what fails; a launch or copy that fails ends the session.
class SimpleDevice {
 public:
  virtual ~SimpleDevice() = default;
  virtual const Traits& traits() const = 0;

  /// A number of the device's own choosing (an address, an index + 1) for memory of so many bytes that starts at a
  /// multiple of Traits::alignment; 0: there is not so much.
  virtual uint64_t allocate(uint64_t bytes) = 0;
  virtual void release(uint64_t memory) = 0;

  virtual void write(const Part& to, const void* from) = 0;  ///< from host memory
  virtual void read(const Part& from, void* to) = 0;         ///< to host memory
  /// Between two parts of equal size that do not overlap; by way of the host unless a device knows better.
  virtual void copy(const Part& from, const Part& to);

  /// As Driver::build_all.
  virtual std::vector<KernelId> build_all(std::span<const KernelSource> sources,
                                          std::span<std::vector<std::byte>> caches) = 0;
  /// Runs groups[0] x groups[1] x groups[2] groups of work-items of a built kernel.
  virtual void launch(KernelId kernel, std::span<const Part> buffers, const std::array<uint32_t, 3>& groups) = 0;
  /// Runs what Traits::library made for a launch on the launch's buffers; `call` is its pointer, of the type that
  /// the library gave it. A device whose traits name a library overrides this; by default an error says so.
  virtual void run_library(const void* call, std::span<const Part> buffers);
  /// Returns when all that was enqueued is done; throws what went wrong with it. write and read come after it.
  virtual void finish() {}
};

/// The device behind an in-order queue on a thread of its own: keeps within the traits' memory,
/// records, enqueues, waits and keeps what fails on the way for the next wait, which names the launch. Throws
/// Error(invalid) for traits without an identity.
std::unique_ptr<Driver> make_driver(std::unique_ptr<SimpleDevice> device);

}  // namespace tutti::sdk
