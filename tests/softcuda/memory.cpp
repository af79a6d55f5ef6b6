#include "tests/softcuda/memory.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace tutti::softcuda {
namespace {

/// Whether the first access is complete before the second begins.
bool ordered(const Visit& first, const Visit& second) {
  if (first.launch != second.launch) return true;
  if (first.block != second.block) return false;
  return first.interval != second.interval || first.thread == second.thread;
}

}  // namespace

Checks checks_named(const std::string& list) {
  Checks checks;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    if (word == "uninitialised")
      checks.uninitialised = true;
    else if (word == "races")
      checks.races = true;
    else if (word != "bounds" && word != "barriers")  // always on
      throw std::invalid_argument("SOFTCUDA_CHECK: unknown check '" + word +
                                  "'; use bounds, barriers, uninitialised, races, separated by commas");
  }
  return checks;
}

bool Cell::touch(const Visit& now, bool store) {
  bool in_order = ordered(writer_, now) && (!store || ordered(reader_, now));
  if (store) {
    writer_ = now;
  } else if (ordered(reader_, now)) {
    reader_ = now;
  } else {
    if (reader_.block != now.block) reader_.block = several;
    reader_.thread = several;
  }
  return in_order;
}

void Memory::add(uint64_t base, uint64_t bytes) {
  Allocation a{base, bytes, {}, {}};
  if (checks_.uninitialised) a.known.resize(bytes);
  if (checks_.races) a.cells.resize(bytes);
  allocations_[base] = std::move(a);
}

Allocation* Memory::find(uint64_t at, uint64_t bytes) {
  auto next = allocations_.upper_bound(at);
  if (next == allocations_.begin()) return nullptr;
  Allocation& a = std::prev(next)->second;
  return at + bytes <= a.end() ? &a : nullptr;
}

void Memory::written(uint64_t at, uint64_t bytes) {
  Allocation* a = checks_.uninitialised ? find(at, bytes) : nullptr;
  if (!a) return;
  auto first = a->known.begin() + static_cast<int64_t>(at - a->base);
  std::fill(first, first + static_cast<int64_t>(bytes), true);
}

void Memory::copied(uint64_t to, uint64_t from, uint64_t bytes) {
  Allocation *source = find(from, bytes), *target = find(to, bytes);
  if (!checks_.uninitialised || !source || !target) return;
  std::vector<bool> known(bytes);
  for (uint64_t k = 0; k < bytes; ++k) known[k] = source->known[from - source->base + k];
  for (uint64_t k = 0; k < bytes; ++k) target->known[to - target->base + k] = known[k];
}

}  // namespace tutti::softcuda
