#include "sdk/rendered/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/rounding.h"
#include "core/base/status.h"

namespace tutti::sdk {

uint64_t padded(uint64_t bytes) { return align_up(std::max<uint64_t>(bytes, 1), 16); }

DeviceBuffer::DeviceBuffer(DeviceMemory& memory, uint64_t bytes, const std::string& what)
    : memory_(&memory), id_(memory.driver.allocate(bytes, what)), bytes_(bytes) {
  memory.meter.add(bytes);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), id_(other.id_), bytes_(std::exchange(other.bytes_, 0)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(id_, other.id_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (!memory_) return;
  memory_->meter.remove(bytes_);
  try {
    memory_->driver.release(id_);
  } catch (const std::exception&) {  // lost device: nothing to free
  }
}

UploadBuffer::UploadBuffer(DeviceMemory& memory, uint64_t bytes, const std::string& what)
    : memory_(&memory), data_(static_cast<std::byte*>(memory.driver.allocate_host(bytes, what))), bytes_(bytes) {
  memory.meter.add(bytes);
}

UploadBuffer::UploadBuffer(UploadBuffer&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), data_(other.data_), bytes_(std::exchange(other.bytes_, 0)) {}

UploadBuffer& UploadBuffer::operator=(UploadBuffer&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

UploadBuffer::~UploadBuffer() {
  if (!memory_) return;
  memory_->meter.remove(bytes_);
  try {
    memory_->driver.release_host(data_);
  } catch (const std::exception&) {
  }
}

uint64_t DeviceStates::declare(const std::string& name, const TensorType& type) {
  auto [it, fresh] = entries_.try_emplace(name);
  if (fresh) {
    it->second.type = type;
    return padded(num_bytes(type));
  }
  if (it->second.type != type)
    throw invalid(fmt::format("state '{}' is {} in this session, but {} in the program", name,
                              to_string(it->second.type), to_string(type)),
                  "give the state another name, or open another session");
  return 0;
}

DeviceBuffer DeviceStates::make(const std::string& name) const {
  const Entry& entry = find(name);
  DeviceBuffer buffer(memory_, bytes(name), fmt::format("state '{}' ({})", name, to_string(entry.type)));
  memory_.driver.fill_zero({buffer.id(), 0, buffer.bytes()});
  return buffer;
}

const DeviceStates::Entry& DeviceStates::find(const std::string& name) const {
  auto it = entries_.find(name);
  if (it != entries_.end()) return it->second;
  std::vector<std::string> known;
  for (const auto& [one, entry] : entries_) known.push_back(one);
  throw unknown_state(name, known);
}

const DeviceStates::Entry& DeviceStates::find(const std::string& name, size_t bytes) const {
  const Entry& entry = find(name);
  if (entry.buffer.bytes() == 0)
    throw invalid(fmt::format("state '{}' has no memory yet", name), "prepare a program with this state first");
  if (size_t want = num_bytes(entry.type); bytes != want)
    throw invalid(fmt::format("state '{}' is {} with {} bytes, but {} bytes are given", name, to_string(entry.type),
                              want, bytes));
  return entry;
}

std::pair<Range, TensorType> DeviceStates::whole(const std::string& name) const {
  const Entry& entry = find(name, num_bytes(find(name).type));
  return {{entry.buffer.id(), 0, entry.buffer.bytes()}, entry.type};
}

void DeviceStates::read(const std::string& name, void* to, size_t bytes) const {
  const Entry& entry = find(name, bytes);
  if (bytes) memory_.driver.read({entry.buffer.id(), 0, bytes}, to);
}

void DeviceStates::forget(const std::string& name) {
  find(name);
  entries_.erase(name);
}

void DeviceStates::write(const std::string& name, const void* from, size_t bytes) const {
  const Entry& entry = find(name, bytes);
  if (bytes) memory_.driver.write({entry.buffer.id(), 0, bytes}, from);
}

}  // namespace tutti::sdk
