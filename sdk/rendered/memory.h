// Counted device memory, and named states in it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/base/shape.h"
#include "sdk/driver.h"
#include "sdk/memory.h"

namespace tutti::sdk {

/// The allocation size for `bytes` bytes: rounded up to 16 bytes, at least 16 (kernel arguments are never empty).
uint64_t padded(uint64_t bytes);

/// A driver and the meter of its allocations.
struct DeviceMemory {
  Driver& driver;
  Meter meter;
};

/// One allocation on the device (RAII). `memory` must outlive it.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  /// Throws Error(no_memory) naming `what`. `bytes` is not 0.
  DeviceBuffer(DeviceMemory& memory, uint64_t bytes, const std::string& what);
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();
  MemoryId id() const { return id_; }
  uint64_t bytes() const { return bytes_; }

 private:
  DeviceMemory* memory_ = nullptr;
  MemoryId id_ = 0;
  uint64_t bytes_ = 0;
};

/// Host memory for uploads; its bytes are counted like those of device memory.
class UploadBuffer {
 public:
  UploadBuffer() = default;
  UploadBuffer(DeviceMemory& memory, uint64_t bytes, const std::string& what);
  UploadBuffer(UploadBuffer&& other) noexcept;
  UploadBuffer& operator=(UploadBuffer&& other) noexcept;
  ~UploadBuffer();
  std::byte* data() const { return data_; }

 private:
  DeviceMemory* memory_ = nullptr;
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

/// The named states of a session: one allocation each, row-major.
class DeviceStates {
 public:
  explicit DeviceStates(DeviceMemory& memory) : memory_(memory) {}
  /// Returns the bytes that its allocation will need: 0 if the name was declared before. Throws Error(invalid) if the
  /// name is declared again with another type.
  uint64_t declare(const std::string& name, const TensorType& type);
  bool allocated(const std::string& name) const { return find(name).buffer.bytes() > 0; }
  uint64_t bytes(const std::string& name) const { return padded(num_bytes(find(name).type)); }
  /// Zeroed memory for the state. take() adopts it after everything else of the program was allocated.
  DeviceBuffer make(const std::string& name) const;
  void take(const std::string& name, DeviceBuffer buffer) { entries_.at(name).buffer = std::move(buffer); }
  MemoryId id(const std::string& name) const { return find(name).buffer.id(); }
  /// A state's memory and type. Throws Error(invalid) for an unknown name, or a state without memory.
  std::pair<Range, TensorType> whole(const std::string& name) const;

  /// Copies whole states. Throws Error(invalid) for an unknown name or a wrong size.
  void read(const std::string& name, void* to, size_t bytes) const;
  void write(const std::string& name, const void* from, size_t bytes) const;
  void forget(const std::string& name);

 private:
  struct Entry {
    TensorType type;
    DeviceBuffer buffer;
  };
  const Entry& find(const std::string& name) const;
  const Entry& find(const std::string& name, size_t bytes) const;
  DeviceMemory& memory_;
  std::map<std::string, Entry> entries_;
};

}  // namespace tutti::sdk
