// The hash of a run's state, and with exact numerics those at its saves, which `tutti verify-run` compares.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "core/base/hash.h"
#include "data/host_tensor.h"

namespace tutti {

/// FNV-1a 64 over the names and bytes of states.
class StateHash {
 public:
  void add(const std::string& name, const HostTensor& tensor) {
    hash_ = fnv1a(tensor.bytes.data(), tensor.bytes.size(), fnv1a(name.data(), name.size(), hash_));
  }
  std::string text() const;  ///< 16 hex digits

 private:
  uint64_t hash_ = fnv1a(nullptr, 0);
};

/// State hash (16 hex digits) by number of steps.
using SavedStates = std::map<int64_t, std::string>;

/// Adds one. Of more than 256, every second of the older ones is dropped.
void add_saved_state(SavedStates& states, int64_t step, const std::string& hash);

/// Writes them to a checkpoint's metadata, as "saved_states": "100:984a1127b5c66cb1 200:…".
void write_saved_states(const SavedStates& states, std::map<std::string, std::string>& metadata);
/// Reads them from a checkpoint's metadata; empty if it has none. Throws Error(invalid) naming `path` for another text.
SavedStates read_saved_states(const std::map<std::string, std::string>& metadata, const std::string& path);

}  // namespace tutti
