// The device's memory: which allocations there are and, on request, which bytes were written and who touched them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tutti::softcuda {

/// Costly checks; bounds, alignment, barriers and endless loops without a barrier are always
/// checked.
struct Checks {
  bool uninitialised = false;  ///< reads of global and shared bytes that nobody wrote
  bool races = false;          ///< two threads touch a byte, one writes it, and no barrier is between them
};
/// Of a list separated by commas. Throws std::invalid_argument naming the words that are allowed.
Checks checks_named(const std::string& list);

/// A thread of a launch, between two barriers.
struct Visit {
  uint64_t launch = 0;
  uint64_t block = 0;
  uint32_t interval = 0;  ///< barriers passed by the block
  uint32_t thread = 0;
};
/// The last accesses of a byte.
class Cell {
 public:
  /// Notes an access; false: it races with an earlier one.
  bool touch(const Visit& now, bool store);

 private:
  Visit writer_, reader_;
};
/// In a Visit: more than one.
constexpr uint32_t several = ~0u;

struct Allocation {
  uint64_t base = 0, bytes = 0;
  std::vector<bool> known;  ///< if uninitialised reads are looked for
  std::vector<Cell> cells;  ///< if races are looked for
  uint64_t end() const { return base + bytes; }
};

class Memory {
 public:
  explicit Memory(const Checks& checks = {}) : checks_(checks) {}
  const Checks& checks() const { return checks_; }
  void add(uint64_t base, uint64_t bytes);
  void remove(uint64_t base) { allocations_.erase(base); }
  /// The allocation that holds all of these bytes, or null.
  Allocation* find(uint64_t at, uint64_t bytes);
  /// Bytes that a copy or the host wrote; they lie in one allocation.
  void written(uint64_t at, uint64_t bytes);
  void copied(uint64_t to, uint64_t from, uint64_t bytes);

 private:
  Checks checks_;
  std::map<uint64_t, Allocation> allocations_;
};

}  // namespace tutti::softcuda
