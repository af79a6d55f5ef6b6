// Shared by the synthetic data sets: the integers of a spec, and random numbers that are bit-identical on every
// machine.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/philox.h"

namespace tutti::data {

/// An integer of a spec such as "synthetic-table:NUMBERS:CATEGORIES".
struct SpecNumber {
  std::string name;  ///< "NUMBERS"
  int64_t least = 1, most = int64_t{1} << 24;
  std::optional<int64_t> otherwise = {};  ///< the default, if it can be omitted
};
/// The integers after the spec's name, in order. Throws Error(invalid) naming the one that is missing or out of range.
std::vector<int64_t> spec_numbers(const std::string& spec, const std::vector<SpecNumber>& numbers);

/// Returns `bytes`. Throws Error if that is more than 8 GiB or more than the free memory.
uint64_t fitting(const std::string& spec, uint64_t bytes);

/// Element `i` of draw (seed 0, step, stream).
inline uint32_t drawn(uint32_t step, uint32_t stream, int64_t i) {
  auto at = static_cast<uint64_t>(i);
  return random_block(0, step, stream, at / 4)[at % 4];
}
/// A number in [0, 1) with 24 bits, exact in f32.
inline float unit(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }
/// An integer in [0, n), by multiply and shift; the bias of at most n / 2^32 is negligible.
inline int32_t below(uint32_t word, int64_t n) {
  return static_cast<int32_t>(uint64_t{word} * static_cast<uint64_t>(n) >> 32);
}
/// An integer in [-2^15, 2^15): sums of products of these are exact.
inline int64_t short_of(uint32_t word) { return int64_t{word >> 16} - 32768; }

}  // namespace tutti::data
