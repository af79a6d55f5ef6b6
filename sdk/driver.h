// The driver interface for rendered kernels: allocate, copy, build a kernel, launch it.
//
// sdk::RenderedSession (rendered.h) turns a Driver into a whole session: it walks programs, chooses and renders
// kernels, plans the arena, and hands the driver flat lists of launches.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/status.h"
#include "kernels/codegen/language.h"
#include "kernels/codegen/launch.h"
#include "kernels/codegen/target.h"
#include "sdk/interval.h"
#include "sdk/plugin.h"

namespace tutti::sdk {

class Library;

using Language = codegen::Language;
using KernelSource = codegen::KernelSource;

/// Properties of a device for choosing kernels (see kernels/codegen/target.h), planning memory and naming cache
/// entries.
struct Traits : codegen::Target {
  uint64_t max_allocation_bytes = ~0ull;  ///< the largest allocation
  uint64_t memory_bytes = ~0ull;          ///< all of the device's memory; ~0: unknown
  bool double_buffered_uploads = false;   ///< uploads go through separate device memory while a step is still running
  uint32_t alignment = 256;               ///< of argument offsets in bytes; a power of two, at least 16
  const Library* library = nullptr;       ///< vendor library (sdk/library.h), or null; must live as long as the driver
  std::string identity;                   ///< device, driver and version: the cache key's first part; not empty
};

/// Throws Error(invalid) if the traits have no identity or an incomplete language.
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
/// of the kernel's parameters; everything else (shapes, strides, numbers) is in the kernel's text. Ranges are never
/// empty, start at multiples of Traits::alignment and have whole 32-bit words (so do allocations); a kernel may get one
/// range twice if it works in place. The ranges of a copy have equal sizes and do not overlap.
using Launch = codegen::LaunchOf<KernelId, Range>;

/// The error of a kernel in Driver::build_all.
struct BuildError : Error {
  BuildError(size_t source, const Error& why) : Error(why), source(source) {}
  size_t source;  ///< index in `sources`
};
/// Rethrows the exception of a source's build; an Error becomes a BuildError.
[[noreturn]] inline void throw_build_error(size_t source, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    throw BuildError(source, e);
  }
}

/// Host memory, and the device range of the same size that it is copied to at the start of a sequence.
struct Upload {
  const void* from = nullptr;  ///< from allocate_host
  Range to;
  /// With Traits::double_buffered_uploads: a range as large as `to`, used only by this sequence; else empty.
  Range buffer = {};
};

/// What the ranks of a group do with some buffers, in place: a sum, or copies of rank `root`'s.
struct Collective {
  struct Part {
    DType dtype;
    uint64_t count;  ///< of elements, not 0
  };
  bool sum = true;
  uint32_t root = 0;
  std::vector<Part> parts;  ///< per buffer
};

/// One device and one in-order queue, used by one thread at a time. Methods throw tutti::Error: invalid for wrong
/// arguments (checked here for all drivers), no_memory, compile (after writing the source with line numbers to a file
/// named in the message), device_lost (permanent), … The destructor waits for submitted work and frees everything.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual const Traits& traits() const = 0;

  /// Device memory; contents undefined. `bytes` is not 0. `what` names it in the error.
  MemoryId allocate(uint64_t bytes, const std::string& what);
  void release(MemoryId memory);  ///< must not be in use by work in flight
  /// Host memory for uploads (pinned if that helps), aligned to 64 bytes.
  void* allocate_host(uint64_t bytes, const std::string& what);
  void release_host(void* memory);

  // These run after all submitted work and are done when they return. Offsets and sizes need no alignment.
  void fill_zero(const Range& range);
  void write(const Range& to, const void* from);
  void read(const Range& from, void* to);

  /// Builds several kernels, which is much cheaper than one by one: compiles each, or loads it from `caches` (one entry
  /// per source: driver-specific bytes; empty: none). An entry that was empty or unusable contains new bytes
  /// afterwards, or is empty if there is nothing to cache. Throws BuildError for the first source that the device
  /// refuses.
  std::vector<KernelId> build_all(std::span<const KernelSource> sources, std::span<std::vector<std::byte>> caches);
  /// The same for one kernel.
  KernelId build(const KernelSource& source, std::vector<std::byte>& cache) {
    return build_all({&source, 1}, {&cache, 1})[0];
  }

  /// Frees a kernel that no sequence uses. Without it, kernels live as long as the driver.
  void forget_kernel(KernelId kernel);

  /// Records launches for repeated submission. Each sees the writes of earlier launches and of sequences submitted
  /// before. `upload` (or null) is copied first, with the content of its host memory at the time of execution.
  SequenceId record(std::span<const Launch> launches, const Upload* upload);
  /// Like record(), but times each launch, see times(). Returns nullopt if the device cannot.
  std::optional<SequenceId> record_timed(std::span<const Launch> launches, const Upload* upload);
  /// The times of the upload, if any, and of each launch in the last run of a sequence of record_timed, which must have
  /// been waited for.
  std::vector<Interval> times(SequenceId sequence);
  void forget(SequenceId sequence);  ///< must not be in flight
  /// Enqueues the sequence without waiting. Returns tickets 1, 2, 3, ….
  uint64_t submit(SequenceId sequence);
  /// Waits until this ticket and all earlier ones are done. Throws Error(timeout) after `timeout_ns` (~0: no timeout),
  /// and errors of asynchronous work.
  void wait(uint64_t ticket, uint64_t timeout_ns);

  // ---- groups of ranks (tutti.collective), of devices whose vendor has a library for them

  /// The library and its version. Throws Error(declined) with the reason why this device cannot join a group.
  std::string group_library();
  /// Returns when all ranks have joined. A driver joins one group at a time.
  void join(const GroupId& id, uint32_t rank, uint32_t ranks);
  /// All ranks leave, behind all work so far.
  void leave();
  /// Ends the group's work at once; later calls throw Error(device_lost).
  void abandon();
  /// A collective as a launch of a sequence; ranges hold the parts' elements. All ranks record it, or none, and submit
  /// it in the same order.
  Launch collective(const Collective& what, std::vector<Range> ranges, const std::string& name);
  /// The call of such a launch, for a driver around this one.
  std::shared_ptr<const void> collective_call(const Collective& what) { return do_collective(what); }
  /// A ticket for all work so far.
  uint64_t mark();

 protected:
  /// "one of 3 launches from 'a' to 'b'", for errors of asynchronous work.
  static std::string span_text(std::span<const Launch> launches);

  // Implementations by the device. Arguments are valid and ranges are not empty.
  virtual MemoryId do_allocate(uint64_t bytes, const std::string& what) = 0;
  virtual void do_release(MemoryId memory) = 0;
  virtual void* do_allocate_host(uint64_t bytes, const std::string& what) = 0;
  virtual void do_release_host(void* memory) = 0;
  virtual void do_fill_zero(const Range& range) = 0;
  virtual void do_write(const Range& to, const void* from) = 0;
  virtual void do_read(const Range& from, void* to) = 0;
  virtual std::vector<KernelId> do_build_all(std::span<const KernelSource> sources,
                                             std::span<std::vector<std::byte>> caches) = 0;
  virtual void do_forget_kernel(KernelId) {}
  virtual SequenceId do_record(std::span<const Launch> launches, const Upload* upload) = 0;
  virtual std::optional<SequenceId> do_record_timed(std::span<const Launch>, const Upload*) { return std::nullopt; }
  virtual std::vector<Interval> do_times(SequenceId) { return {}; }
  virtual void do_forget(SequenceId sequence) = 0;
  virtual uint64_t do_submit(SequenceId sequence) = 0;
  virtual void do_wait(uint64_t ticket, uint64_t timeout_ns) = 0;
  virtual std::string do_group_library();
  virtual void do_join(const GroupId&, uint32_t, uint32_t) {}
  virtual void do_leave() {}
  virtual void do_abandon() {}
  virtual std::shared_ptr<const void> do_collective(const Collective&) { return nullptr; }
  virtual uint64_t do_mark();

 private:
  void check_range(const Range& range, const std::string& what) const;
  void check_launch(const Launch& launch) const;
  /// Checks the arguments of record; returns null for an empty upload.
  const Upload* checked(std::span<const Launch> launches, const Upload* upload) const;

  std::map<MemoryId, uint64_t> memories_;          // bytes
  std::map<KernelId, std::vector<bool>> kernels_;  // per parameter: whether it is a texel buffer
  std::set<void*> host_;
  std::set<SequenceId> sequences_;
  std::map<SequenceId, size_t> timed_;  // number of intervals
  uint64_t newest_ = 0;                 // ticket
  uint32_t ranks_ = 0;                  // of the group; 0: none
};

}  // namespace tutti::sdk
