// What a device must offer to run the rendered kernels: allocate, copy, build a kernel, launch it.
//
// sdk::RenderedSession (rendered.h) turns a Driver into a whole session: it walks programs, chooses and renders
// kernels, plans the arena, and hands the driver flat lists of launches.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "kernels/codegen/language.h"
#include "kernels/codegen/launch.h"
#include "kernels/codegen/target.h"
#include "sdk/interval.h"

namespace tutti::sdk {

class Library;

using Language = codegen::Language;
using KernelSource = codegen::KernelSource;

/// Facts that choose kernels (see kernels/codegen/target.h), plan memory and name cache entries.
struct Traits : codegen::Target {
  uint64_t max_allocation_bytes = ~0ull;  ///< the largest allocation
  uint64_t memory_bytes = ~0ull;          ///< all of the device's memory; ~0: unknown
  uint32_t max_arguments = 16;            ///< buffers of one kernel
  bool double_buffered_uploads = false;   ///< uploads go through device memory of their own, while a step still runs
  uint32_t alignment = 256;               ///< of argument offsets, bytes; a power of two, at least 16
  const Library* library = nullptr;  ///< of the device's vendor (sdk/library.h), or null; lives as long as the driver
  std::string identity;              ///< device, driver and version: the cache key's first part; not empty
};

/// Throws Error(invalid) where the traits name no identity, or a language that lacks a part.
void check_traits(const Traits& traits);

using MemoryId = uint32_t;
using KernelId = uint32_t;
using SequenceId = uint32_t;

/// A part of an allocation.
struct Range {
  MemoryId memory = 0;
  uint64_t offset = 0, bytes = 0;
};

/// One step of a sequence: a kernel over groups of work-items, or a copy. Kernel arguments are the buffers in the order
/// of the kernel's parameters; everything else (shapes, strides, numbers) is text of the kernel. Ranges are never
/// empty, start at multiples of Traits::alignment and have whole 32-bit words (so do allocations); a kernel may be
/// given one range twice where it reads and writes in place. Those of a copy have equal sizes and lie apart.
using Launch = codegen::LaunchOf<KernelId, Range>;

/// A kernel of Driver::build_all that could not be built.
struct BuildError : Error {
  BuildError(size_t source, const Error& why) : Error(why), source(source) {}
  size_t source;  ///< which of them
};

/// Host memory, and the device range of the same size that it is copied to at the start of a sequence.
struct Upload {
  const void* from = nullptr;  ///< of allocate_host
  Range to;
  /// Where Traits::double_buffered_uploads asks for one: as large as `to`, of this sequence alone; else empty.
  Range buffer = {};
};

/// One device and one in-order queue, used by one thread at a time. Methods throw tutti::Error: invalid for arguments
/// that are checked here for every driver, then no_memory, compile (after writing the source with line numbers to a
/// file that the message names), device_lost (then for ever), … The destructor waits for what was submitted and frees
/// everything.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual const Traits& traits() const = 0;

  /// Device memory; contents undefined. `bytes` is not 0. `what` names it in the error.
  MemoryId allocate(uint64_t bytes, const std::string& what);
  void release(MemoryId memory);  ///< nothing in flight uses it
  /// Host memory that uploads are copied from (pinned where that helps), aligned to 64 bytes.
  void* allocate_host(uint64_t bytes, const std::string& what);
  void release_host(void* memory);

  // Each comes after everything that was submitted before and is done when it returns. Offsets and sizes are any bytes.
  void fill_zero(const Range& range);
  void write(const Range& to, const void* from);
  void read(const Range& from, void* to);

  /// Builds kernels together, which is much cheaper than one by one: compiles each, or takes it from `caches` (one
  /// entry per source: driver-specific bytes, empty where there are none). An entry that was empty or did not fit this
  /// driver holds fresh bytes afterwards, or is empty: nothing to cache. Kernels live until the driver dies. Throws
  /// BuildError for the first source that the device refuses.
  std::vector<KernelId> build_all(std::span<const KernelSource> sources, std::span<std::vector<std::byte>> caches);
  /// The same for one kernel.
  KernelId build(const KernelSource& source, std::vector<std::byte>& cache) {
    return build_all({&source, 1}, {&cache, 1})[0];
  }

  /// Records launches to be submitted many times; each sees the writes of those before it, and of sequences submitted
  /// before. `upload` (or null) is copied first, as its host memory is when the sequence runs.
  SequenceId record(std::span<const Launch> launches, const Upload* upload);
  /// The same for launches that the device times one by one, as `times` tells; nothing where it cannot.
  std::optional<SequenceId> record_timed(std::span<const Launch> launches, const Upload* upload);
  /// When the upload, if there is one, and each launch of a sequence of record_timed ran last. Its submit was waited
  /// for.
  std::vector<Interval> times(SequenceId sequence);
  void forget(SequenceId sequence);  ///< it is not in flight
  /// Enqueues; returns a ticket that grows by one from 1 on. Does not wait.
  uint64_t submit(SequenceId sequence);
  /// Until that ticket and all before are done. Throws Error(timeout) when the time (~0: none) runs out, and what went
  /// wrong late otherwise.
  void wait(uint64_t ticket, uint64_t timeout_ns);

 protected:
  /// "one of 3 launches from 'a' to 'b'", for late errors.
  static std::string span_text(std::span<const Launch> launches);

  // What a device does, with arguments that were checked; ranges are not empty.
  virtual MemoryId do_allocate(uint64_t bytes, const std::string& what) = 0;
  virtual void do_release(MemoryId memory) = 0;
  virtual void* do_allocate_host(uint64_t bytes, const std::string& what) = 0;
  virtual void do_release_host(void* memory) = 0;
  virtual void do_fill_zero(const Range& range) = 0;
  virtual void do_write(const Range& to, const void* from) = 0;
  virtual void do_read(const Range& from, void* to) = 0;
  virtual std::vector<KernelId> do_build_all(std::span<const KernelSource> sources,
                                             std::span<std::vector<std::byte>> caches) = 0;
  virtual SequenceId do_record(std::span<const Launch> launches, const Upload* upload) = 0;
  virtual std::optional<SequenceId> do_record_timed(std::span<const Launch>, const Upload*) { return std::nullopt; }
  virtual std::vector<Interval> do_times(SequenceId) { return {}; }
  virtual void do_forget(SequenceId sequence) = 0;
  virtual uint64_t do_submit(SequenceId sequence) = 0;
  virtual void do_wait(uint64_t ticket, uint64_t timeout_ns) = 0;

 private:
  void check_range(const Range& range, const std::string& what) const;
  void check_launch(const Launch& launch) const;
  /// The arguments of record: null for an upload of nothing.
  const Upload* checked(std::span<const Launch> launches, const Upload* upload) const;

  std::map<MemoryId, uint64_t> memories_;          // bytes
  std::map<KernelId, std::vector<bool>> kernels_;  // per parameter: a texel buffer
  std::set<void*> host_;
  std::set<SequenceId> sequences_;
  std::map<SequenceId, size_t> timed_;  // intervals
  uint64_t newest_ = 0;                 // ticket
};

}  // namespace tutti::sdk
