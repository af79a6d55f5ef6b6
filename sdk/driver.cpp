// Checks the arguments of driver calls.
#include "sdk/driver.h"

#include <fmt/format.h>

namespace tutti::sdk {

void check_traits(const Traits& traits) {
  codegen::check_language(*traits.language);
  if (traits.identity.empty())
    throw invalid(
        "Traits::identity is empty: kernels compiled by another device or driver would be loaded from the cache",
        "include everything that a compiled kernel depends on besides its source: device, driver, compiler and "
        "versions");
}

MemoryId Driver::allocate(uint64_t bytes, const std::string& what) {
  if (bytes == 0) throw invalid(fmt::format("an allocation of 0 bytes for {}", what));
  MemoryId id = do_allocate(bytes, what);
  memories_[id] = bytes;
  return id;
}

void Driver::release(MemoryId memory) {
  if (memories_.erase(memory) == 0) throw invalid(fmt::format("release: unknown memory {}", memory));
  do_release(memory);
}

void* Driver::allocate_host(uint64_t bytes, const std::string& what) {
  return *host_.insert(do_allocate_host(bytes, what)).first;
}

void Driver::release_host(void* memory) {
  if (host_.erase(memory) == 0) throw invalid("release_host: this memory was not returned by allocate_host");
  do_release_host(memory);
}

void Driver::fill_zero(const Range& range) {
  check_range(range, "fill_zero");
  if (range.bytes > 0) do_fill_zero(range);
}

void Driver::write(const Range& to, const void* from) {
  check_range(to, "write");
  if (to.bytes > 0) do_write(to, from);
}

void Driver::read(const Range& from, void* to) {
  check_range(from, "read");
  if (from.bytes > 0) do_read(from, to);
}

std::vector<KernelId> Driver::build_all(std::span<const KernelSource> sources,
                                        std::span<std::vector<std::byte>> caches) {
  if (caches.size() != sources.size())
    throw invalid(fmt::format("build_all: {} cache entries for {} kernels", caches.size(), sources.size()));
  std::vector<KernelId> ids = do_build_all(sources, caches);
  if (ids.size() != sources.size())
    throw Error(Code::internal,
                fmt::format("build_all returned {} kernels for {} sources", ids.size(), sources.size()));
  for (size_t k = 0; k < ids.size(); ++k) {
    kernels_[ids[k]] = sources[k].texels;
    kernels_[ids[k]].resize(sources[k].buffers());
  }
  return ids;
}

void Driver::forget_kernel(KernelId kernel) {
  if (kernels_.erase(kernel) == 0) throw invalid(fmt::format("unknown kernel {}", kernel));
  do_forget_kernel(kernel);
}

const Upload* Driver::checked(std::span<const Launch> launches, const Upload* upload) const {
  if (upload && upload->to.bytes == 0) upload = nullptr;
  if (upload) {
    check_range(upload->to, "upload");
    if (traits().double_buffered_uploads) {
      check_range(upload->buffer, "upload");
      if (upload->buffer.bytes != upload->to.bytes)
        throw invalid(fmt::format("an upload of {} bytes needs an upload buffer of the same size", upload->to.bytes));
    }
  }
  for (const Launch& launch : launches) check_launch(launch);
  return upload;
}

SequenceId Driver::record(std::span<const Launch> launches, const Upload* upload) {
  upload = checked(launches, upload);
  return *sequences_.insert(do_record(launches, upload)).first;
}

std::optional<SequenceId> Driver::record_timed(std::span<const Launch> launches, const Upload* upload) {
  upload = checked(launches, upload);
  std::optional<SequenceId> id = do_record_timed(launches, upload);
  if (id) sequences_.insert(*id), timed_[*id] = launches.size() + (upload ? 1 : 0);
  return id;
}

std::vector<Interval> Driver::times(SequenceId sequence) {
  auto timed = timed_.find(sequence);
  if (timed == timed_.end()) throw invalid(fmt::format("unknown timed sequence {}", sequence));
  std::vector<Interval> all = do_times(sequence);
  if (all.size() != timed->second)
    throw Error(Code::internal, fmt::format("times returned {} intervals for {} launches", all.size(), timed->second));
  return all;
}

void Driver::forget(SequenceId sequence) {
  if (sequences_.erase(sequence) == 0) throw invalid(fmt::format("unknown sequence {}", sequence));
  timed_.erase(sequence);
  do_forget(sequence);
}

uint64_t Driver::submit(SequenceId sequence) {
  if (!sequences_.contains(sequence)) throw invalid(fmt::format("unknown sequence {}", sequence));
  return newest_ = do_submit(sequence);
}

void Driver::wait(uint64_t ticket, uint64_t timeout_ns) {
  if (ticket > newest_)
    throw invalid(fmt::format("wait: ticket {} was never returned by run; the newest is {}", ticket, newest_));
  do_wait(ticket, timeout_ns);
}

std::string Driver::group_library() { return do_group_library(); }

std::string Driver::do_group_library() {
  throw Error(Code::declined, "this device cannot join a group of ranks", "let the ranks add up on the host");
}

void Driver::join(const GroupId& id, uint32_t rank, uint32_t ranks) {
  group_library();
  if (rank >= ranks) throw invalid(fmt::format("join: rank {} of {} ranks", rank, ranks));
  if (ranks_ > 0) throw invalid("join: the session is in a group already", "call leave first");
  do_join(id, rank, ranks);
  ranks_ = ranks;
}

void Driver::leave() {
  if (ranks_ == 0) throw invalid("leave: the session is in no group", "call join first");
  ranks_ = 0;
  do_leave();
}

void Driver::abandon() {
  if (ranks_ > 0) do_abandon();
}

Launch Driver::collective(const Collective& what, std::vector<Range> ranges, const std::string& name) {
  if (ranks_ == 0) throw invalid(fmt::format("{}: the session is in no group", name), "call join first");
  if (!what.sum && what.root >= ranks_)
    throw invalid(fmt::format("{}: there is no rank {} in a group of {} ranks", name, what.root, ranks_));
  if (ranges.empty() || ranges.size() != what.parts.size())
    throw invalid(fmt::format("{}: {} buffer ranges for {} parts", name, ranges.size(), what.parts.size()));
  for (size_t k = 0; k < ranges.size(); ++k)
    if (what.parts[k].count == 0 || ranges[k].bytes / size_of(what.parts[k].dtype) < what.parts[k].count)
      throw invalid(fmt::format("{}: {} elements of {} in a range of {} bytes", name, what.parts[k].count,
                                tutti::name(what.parts[k].dtype), ranges[k].bytes));
  Launch launch{.buffers = std::move(ranges), .name = name, .library = do_collective(what)};
  check_launch(launch);
  return launch;
}

uint64_t Driver::mark() { return newest_ = do_mark(); }
uint64_t Driver::do_mark() { throw Error(Code::declined, "this device cannot join a group of ranks"); }

std::string Driver::span_text(std::span<const Launch> launches) {
  if (launches.empty()) return "a sequence without launches";
  if (launches.size() == 1) return fmt::format("'{}'", launches[0].name);
  return fmt::format("one of {} launches from '{}' to '{}'", launches.size(), launches.front().name,
                     launches.back().name);
}

void Driver::check_range(const Range& range, const std::string& what) const {
  auto at = memories_.find(range.memory);
  if (at == memories_.end()) throw invalid(fmt::format("{}: unknown memory {}", what, range.memory));
  if (range.bytes > at->second || range.offset > at->second - range.bytes)
    throw invalid(fmt::format("{}: {} bytes at offset {} are outside of the memory of {} bytes", what, range.bytes,
                              range.offset, at->second));
}

void Driver::check_launch(const Launch& launch) const {
  auto refuse = [&](const std::string& why) { throw invalid(fmt::format("{}: {}", launch.name, why)); };
  const Traits& t = traits();
  for (const Range& range : launch.buffers) {
    check_range(range, launch.name);
    if (range.bytes == 0) refuse("an empty buffer range");
    if (!launch.copy && range.offset % t.alignment)
      refuse(fmt::format("offset {} is not a multiple of the alignment {}", range.offset, t.alignment));
  }
  if (launch.copy) {
    if (launch.buffers.size() != 2 || launch.buffers[0].bytes != launch.buffers[1].bytes)
      refuse("a copy needs two buffer ranges of equal size");
    return;
  }
  if (launch.library) return;  // library calls check their own buffers
  auto kernel = kernels_.find(launch.kernel);
  if (kernel == kernels_.end()) refuse(fmt::format("unknown kernel {}", launch.kernel));
  const std::vector<bool>& texels = kernel->second;
  if (launch.buffers.size() != texels.size())
    refuse(fmt::format("{} buffers given, but the kernel has {}", launch.buffers.size(), texels.size()));
  for (uint32_t groups : launch.groups)
    if (groups == 0 || groups > 65535)
      refuse(fmt::format("{} groups along one dimension; allowed are 1 to 65535", groups));
  for (size_t i = 0; i < texels.size(); ++i) {
    uint64_t bytes = launch.buffers[i].bytes;
    if (texels[i] && (bytes % 16 || bytes / 16 > t.max_texels))
      refuse(fmt::format(
          "a texel buffer of {} bytes; its size must be a multiple of 16 bytes (one texel) with at most {} texels",
          bytes, t.max_texels));
    if (!texels[i] && bytes > t.max_buffer_bytes)
      refuse(fmt::format("a buffer range of {} bytes; kernels of this device can address at most {}", bytes,
                         t.max_buffer_bytes));
  }
}

}  // namespace tutti::sdk
