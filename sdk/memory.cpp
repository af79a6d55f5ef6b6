#include "sdk/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/base/host_memory.h"
#include "core/base/rounding.h"

namespace tutti::sdk {
namespace {

constexpr size_t alignment = 64;
alignas(alignment) std::byte nothing[alignment];  // target of empty buffers, so that memcpy of 0 bytes is legal

constexpr size_t worth_a_look = 1 << 20;  // smaller sizes are not worth the query

// With overcommit, allocating more than the available memory would succeed, and the process would be killed on first
// access.
bool beyond_room(size_t bytes) { return bytes >= worth_a_look && bytes > host_memory_left(); }

constexpr size_t huge_page = 2 << 20;

/// Large memory is in huge pages where the system has some: fewer page faults and fewer misses of the TLB.
void* allocate(size_t bytes) {
  if (bytes < 2 * huge_page) return std::aligned_alloc(alignment, align_up(bytes, alignment));
  const size_t whole = align_up(bytes, huge_page);
  void* at = std::aligned_alloc(huge_page, whole);
#ifdef MADV_HUGEPAGE
  if (at) madvise(at, whole, MADV_HUGEPAGE);
#endif
  return at;
}

}  // namespace

void Meter::add(size_t bytes) {
  now_ += bytes;
  peak_ = std::max(peak_, now_);
}

Buffer::Buffer(Meter& meter, size_t bytes, const std::string& what) : data_(nothing) {
  if (bytes == 0) return;
  void* at = beyond_room(bytes) ? nullptr : allocate(bytes);
  if (!at)
    throw Error(Code::no_memory,
                fmt::format("no memory for {}: {} bytes on top of {} in use", what, bytes, meter.now()));
  data_ = static_cast<std::byte*>(at);
  bytes_ = bytes;
  meter_ = &meter;
  std::memset(data_, 0, bytes);
  meter.add(bytes);
}

Buffer::Buffer(Buffer&& other) noexcept
    : meter_(std::exchange(other.meter_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(meter_, other.meter_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (bytes_ == 0) return;
  meter_->remove(bytes_);
  std::free(data_);
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

void HostStates::allocate(const std::string& name, Meter& meter) {
  auto it = entries_.find(name);
  if (it == entries_.end()) throw Error(Code::internal, fmt::format("state '{}' was never declared", name));
  Entry& entry = it->second;
  if (entry.allocated) return;
  entry.buffer = Buffer(meter, num_bytes(entry.type), fmt::format("state '{}' ({})", name, to_string(entry.type)));
  entry.allocated = true;
}

std::byte* HostStates::data(const std::string& name) const {
  auto it = entries_.find(name);
  if (it == entries_.end() || !it->second.allocated)
    throw Error(Code::internal, fmt::format("state '{}' has no memory yet", name));
  return it->second.buffer.data();
}

const HostStates::Entry& HostStates::find(const std::string& name) const {
  auto it = entries_.find(name);
  if (it == entries_.end()) {
    std::vector<std::string> known;
    for (const auto& [one, entry] : entries_) known.push_back(one);
    throw unknown_state(name, known);
  }
  const Entry& entry = it->second;
  if (!entry.allocated)
    throw invalid(fmt::format("state '{}' has no memory yet", name), "prepare a program with this state first");
  return entry;
}

const HostStates::Entry& HostStates::find(const std::string& name, size_t bytes) const {
  const Entry& entry = find(name);
  if (bytes != entry.buffer.size())
    throw invalid(fmt::format("state '{}' is {} with {} bytes, but {} bytes are given", name, to_string(entry.type),
                              entry.buffer.size(), bytes));
  return entry;
}

void HostStates::read(const std::string& name, void* to, size_t bytes) const {
  const Entry& entry = find(name, bytes);
  if (bytes) std::memcpy(to, entry.buffer.data(), bytes);
}

void HostStates::write(const std::string& name, const void* from, size_t bytes) {
  const Entry& entry = find(name, bytes);
  if (bytes) std::memcpy(entry.buffer.data(), from, bytes);
}

void HostStates::forget(const std::string& name) {
  find(name);
  entries_.erase(name);
}

TuttiNativeState HostStates::native(const std::string& name) const {
  const Entry& entry = find(name);
  return {.size = sizeof(TuttiNativeState),
          .kind = TUTTI_NATIVE_HOST,
          .dtype = static_cast<uint32_t>(entry.type.dtype),
          .data = reinterpret_cast<uint64_t>(entry.buffer.data()),
          .bytes = entry.buffer.size()};
}

}  // namespace tutti::sdk
