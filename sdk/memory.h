// Counted memory for sessions whose device memory is host memory.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/abi/tutti_plugin.h"
#include "core/base/shape.h"
#include "core/base/status.h"

namespace tutti::sdk {

/// Counts allocated bytes for `usage`.
class Meter {
 public:
  void add(size_t bytes);
  void remove(size_t bytes) { now_ -= bytes; }
  uint64_t now() const { return now_; }
  uint64_t peak() const { return peak_; }

 private:
  uint64_t now_ = 0, peak_ = 0;
};

/// Zeroed host memory, 64-byte aligned, counted by a meter (which must outlive it). Throws Error(no_memory) naming
/// `what` and the size.
class Buffer {
 public:
  Buffer() = default;
  /// `uncounted`: how many of the bytes are padding that the meter leaves out.
  Buffer(Meter& meter, size_t bytes, const std::string& what, size_t uncounted = 0);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();
  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }
  /// Leaves this many more of its bytes out of the meter.
  void uncount(size_t bytes);

 private:
  Meter* meter_ = nullptr;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0, counted_ = 0;
};

/// The error for an unknown state name; it lists the first eight of the session's `known` states.
Error unknown_state(const std::string& name, const std::vector<std::string>& known);

/// The named states of a session whose device is the host, row-major. `declare` fixes name and type at compile time
/// (Error if the name is declared again with another type), `allocate` gives zeroed memory to those that have none,
/// those of a program in few pieces, read and write copy whole states and throw errors that name mismatches.
class HostStates {
 public:
  /// Returns the bytes that allocate(name) will need: 0 if the name was declared before.
  size_t declare(const std::string& name, const TensorType& type);
  void allocate(const std::vector<std::string>& names, Meter& meter);
  std::byte* data(const std::string& name) const;
  void read(const std::string& name, void* to, size_t bytes) const;
  void write(const std::string& name, const void* from, size_t bytes);
  /// The state's memory in the form of TuttiNative.
  TuttiNativeState native(const std::string& name) const;
  /// The meter falls by the state's bytes. Its memory is freed with the last state of the piece.
  void forget(const std::string& name);

 private:
  struct Entry {
    TensorType type;
    std::byte* data = nullptr;      ///< null until allocated
    std::shared_ptr<Buffer> piece;  ///< which has the data
    size_t bytes() const { return num_bytes(type); }
  };
  const Entry& find(const std::string& name) const;
  const Entry& find(const std::string& name, size_t bytes) const;
  std::map<std::string, Entry> entries_;
};

}  // namespace tutti::sdk
