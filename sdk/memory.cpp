#include "sdk/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/base/host_memory.h"
#include "core/base/rounding.h"
#include "core/os/memory.h"
#include "sdk/parallel_build.h"

namespace tutti::sdk {
namespace {

constexpr size_t alignment = 64;
alignas(alignment) std::byte nothing[alignment];  // target of empty buffers, so that memcpy of 0 bytes is legal

constexpr size_t worth_a_look = 1 << 20;  // smaller sizes are not worth the query

// With overcommit, allocating more than the available memory would succeed, and the process would be killed on first
// access.
bool beyond_room(size_t bytes) { return bytes >= worth_a_look && bytes > host_memory_left(); }

constexpr size_t huge_page = 2 << 20;
constexpr size_t worth_mapping = 1 << 20;

/// Mappings consist of whole units: large ones of huge pages where the system has some, for fewer page faults and TLB
/// misses.
size_t unit_of(size_t bytes) { return bytes < 2 * huge_page ? os::page_size() : huge_page; }

/// Makes zeroed pages present, in several threads: clearing pages takes most of the time of an allocation.
bool populate_in_parts(std::byte* at, size_t bytes) {
  constexpr size_t part = 8 * huge_page;
  std::atomic<bool> all = true;
  parallel_build(ceil_div(bytes, part), [&](size_t k) {
    if (!os::populate(at + k * part, std::min(part, bytes - k * part))) all = false;
  });
  return all;
}

/// New pages are zero, so nothing has to write them; null if there is no memory.
void* map_zeroed(size_t bytes) {
  const size_t unit = unit_of(bytes), whole = align_up(bytes, unit);
  auto* at = static_cast<std::byte*>(os::map_pages(whole, unit));
  if (!at) return nullptr;
  if (unit == huge_page) os::prefer_huge_pages(at, whole);
  if (populate_in_parts(at, whole)) return at;
  os::unmap_pages(at, whole);
  return nullptr;
}

void* allocate_zeroed(size_t bytes) {
  if (bytes >= worth_mapping) return map_zeroed(bytes);
  void* at = os::allocate_aligned(alignment, bytes);
  if (at) std::memset(at, 0, bytes);
  return at;
}

void release(void* at, size_t bytes) {
  if (bytes >= worth_mapping)
    os::unmap_pages(at, align_up(bytes, unit_of(bytes)));
  else
    os::free_aligned(at);
}

}  // namespace

void Meter::add(size_t bytes) {
  now_ += bytes;
  peak_ = std::max(peak_, now_);
}

Buffer::Buffer(Meter& meter, size_t bytes, const std::string& what, size_t uncounted) : data_(nothing) {
  if (bytes == 0) return;
  void* at = beyond_room(bytes) ? nullptr : allocate_zeroed(bytes);
  if (!at)
    throw Error(Code::no_memory,
                fmt::format("no memory for {}: {} bytes on top of {} in use", what, bytes, meter.now()));
  data_ = static_cast<std::byte*>(at);
  bytes_ = bytes;
  counted_ = bytes - uncounted;
  meter_ = &meter;
  meter.add(counted_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : meter_(std::exchange(other.meter_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      counted_(std::exchange(other.counted_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(meter_, other.meter_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(counted_, other.counted_);
  return *this;
}

Buffer::~Buffer() {
  if (bytes_ == 0) return;
  meter_->remove(counted_);
  release(data_, bytes_);
}

void Buffer::uncount(size_t bytes) {
  if (bytes == 0) return;
  counted_ -= bytes;
  meter_->remove(bytes);
}

Error unknown_state(const std::string& name, const std::vector<std::string>& known) {
  std::string names;
  for (size_t k = 0; k < std::min<size_t>(known.size(), 8); ++k) names += (k ? ", " : "") + known[k];
  if (known.size() > 8) names += fmt::format(", … ({} in all)", known.size());
  return invalid(fmt::format("no state '{}' in this session", name),
                 names.empty() ? "compile a program with this state first" : "its states are: " + names);
}

size_t HostStates::declare(const std::string& name, const TensorType& type) {
  auto [it, fresh] = entries_.try_emplace(name);
  if (fresh) {
    it->second.type = type;
    return num_bytes(type);
  }
  if (it->second.type != type)
    throw invalid(fmt::format("state '{}' is {} in this session, but {} in the program", name,
                              to_string(it->second.type), to_string(type)),
                  "give the state another name, or open another session");
  return 0;
}

void HostStates::allocate(const std::vector<std::string>& names, Meter& meter) {
  constexpr size_t large = 2 * huge_page;  // has a piece of its own, so that forget() frees it
  struct Fresh {
    Entry* entry;
    std::shared_ptr<Buffer> piece;
    size_t place;
  };
  std::vector<Fresh> fresh;
  size_t end = 0, counted = 0;
  for (const std::string& name : names) {
    auto it = entries_.find(name);
    if (it == entries_.end()) throw Error(Code::internal, fmt::format("state '{}' was never declared", name));
    Entry& entry = it->second;
    if (entry.data) continue;
    if (entry.bytes() >= large) {
      std::string what = fmt::format("state '{}' ({})", name, to_string(entry.type));
      fresh.push_back({&entry, std::make_shared<Buffer>(meter, entry.bytes(), what), 0});
      continue;
    }
    fresh.push_back({&entry, nullptr, end});
    end += align_up(entry.bytes(), alignment);
    counted += entry.bytes();
  }
  auto shared = std::make_shared<Buffer>(meter, end, "the states", end - counted);
  for (Fresh& f : fresh) {
    f.entry->piece = f.piece ? std::move(f.piece) : shared;
    f.entry->data = f.entry->piece->data() + f.place;
  }
}

std::byte* HostStates::data(const std::string& name) const {
  auto it = entries_.find(name);
  if (it == entries_.end() || !it->second.data)
    throw Error(Code::internal, fmt::format("state '{}' has no memory yet", name));
  return it->second.data;
}

const HostStates::Entry& HostStates::find(const std::string& name) const {
  auto it = entries_.find(name);
  if (it == entries_.end()) {
    std::vector<std::string> known;
    for (const auto& [one, entry] : entries_) known.push_back(one);
    throw unknown_state(name, known);
  }
  const Entry& entry = it->second;
  if (!entry.data)
    throw invalid(fmt::format("state '{}' has no memory yet", name), "prepare a program with this state first");
  return entry;
}

const HostStates::Entry& HostStates::find(const std::string& name, size_t bytes) const {
  const Entry& entry = find(name);
  if (bytes != entry.bytes())
    throw invalid(fmt::format("state '{}' is {} with {} bytes, but {} bytes are given", name, to_string(entry.type),
                              entry.bytes(), bytes));
  return entry;
}

void HostStates::read(const std::string& name, void* to, size_t bytes) const {
  const Entry& entry = find(name, bytes);
  if (bytes) std::memcpy(to, entry.data, bytes);
}

void HostStates::write(const std::string& name, const void* from, size_t bytes) {
  const Entry& entry = find(name, bytes);
  if (bytes) std::memcpy(entry.data, from, bytes);
}

void HostStates::forget(const std::string& name) {
  const Entry& entry = find(name);
  entry.piece->uncount(entry.bytes());
  entries_.erase(name);
}

TuttiNativeState HostStates::native(const std::string& name) const {
  const Entry& entry = find(name);
  return {.size = sizeof(TuttiNativeState),
          .kind = TUTTI_NATIVE_HOST,
          .dtype = static_cast<uint32_t>(entry.type.dtype),
          .data = reinterpret_cast<uint64_t>(entry.data),
          .bytes = entry.bytes()};
}

}  // namespace tutti::sdk
