// A warp: 32 lanes, of which those execute an instruction whose program counter is the lowest.
#pragma once
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

#include "tests/softcuda/ptx.h"

namespace tutti::softcuda {

class BlockRun;

constexpr int exited = 1 << 30;  // program counter of lanes that have returned

/// Copies to shared memory that one instruction began; addresses are the host's.
struct Copy {
  const Instruction* instruction = nullptr;
  uint32_t lanes = 0, reading = 0;  ///< those that have not waited; those that do not write zeros
  std::array<uint64_t, softcuda::lanes> from = {}, to = {};
};

struct Warp {
  uint32_t* registers = nullptr;
  alignas(64) std::array<uint32_t, lanes> mask = {};  ///< all ones for lanes that take part in the instruction
  std::array<int, lanes> counters = {};
  uint32_t active = 0;  ///< the mask as bits
  uint32_t alive = 0;   ///< lanes that have not returned
  unsigned first_thread = 0;
  bool waits = false;  ///< at a barrier
  BlockRun* block = nullptr;
  Copy copy;                 ///< what an instruction of two is at
  std::vector<Copy> copies;  ///< begun

  uint32_t* words(int slot) const { return registers + static_cast<size_t>(slot) * lanes; }
  void set_active(uint32_t bits) {
    active = bits;
    for (int l = 0; l < lanes; ++l) mask[static_cast<size_t>(l)] = bits >> l & 1 ? ~0u : 0;
  }
};

/// How a lane's value of a type is kept: types of 1 and 2 bytes and predicates in the low bits of a word.
template <class T>
using Kept = std::conditional_t<sizeof(T) < 4, uint32_t, T>;

/// A lane's operands.
template <class T>
struct In {
  const Kept<T>* at;
  In(const Warp& w, int slot) : at(reinterpret_cast<const Kept<T>*>(w.words(slot))) {}
  T operator[](int lane) const { return static_cast<T>(at[lane]); }
};

/// Result of the active lanes: value(lane).
template <class T, class F>
inline void write(Warp& w, int slot, F value) {
  auto* d = reinterpret_cast<Kept<T>*>(w.words(slot));
  if (w.active == ~0u) {
#pragma GCC ivdep
    for (int l = 0; l < lanes; ++l) d[l] = static_cast<Kept<T>>(value(l));
    return;
  }
  const uint32_t* mask = w.mask.data();
#pragma GCC ivdep
  for (int l = 0; l < lanes; ++l) {
    auto x = static_cast<Kept<T>>(value(l));
    d[l] = mask[l] ? x : d[l];
  }
}

/// Calls f(lane) for the active lanes.
template <class F>
inline void for_active(const Warp& w, F f) {
  if (w.active == ~0u) {
    for (int l = 0; l < lanes; ++l) f(l);
    return;
  }
  for (uint32_t bits = w.active; bits; bits &= bits - 1) f(std::countr_zero(bits));
}

}  // namespace tutti::softcuda
