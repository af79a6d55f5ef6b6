// What the synthetic data sets share: the numbers of a spec, and draws that are the same bits on every machine.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/philox.h"

namespace tutti::data {

/// A whole number of a spec such as "synthetic-table:NUMBERS:CATEGORIES".
struct SpecNumber {
  std::string name;  ///< "NUMBERS"
  int64_t least = 1, most = int64_t{1} << 24;
  std::optional<int64_t> otherwise = {};  ///< where the spec ends before it
};
/// The numbers after the spec's name, in order. Throws Error(invalid) naming the one that is missing or out of range.
std::vector<int64_t> spec_numbers(const std::string& spec, const std::vector<SpecNumber>& numbers);

/// `bytes`. Throws Error where that is more than 8 GiB or than what is free.
uint64_t fitting(const std::string& spec, uint64_t bytes);

/// Element `i` of draw (seed 0, step, stream).
inline uint32_t drawn(uint32_t step, uint32_t stream, int64_t i) {
  auto at = static_cast<uint64_t>(i);
  return random_block(0, step, stream, at / 4)[at % 4];
}
/// A number in [0, 1) with 24 bits, which f32 holds exactly.
inline float unit(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }
/// A number in [0, n). A multiply and a shift: the bias of at most n / 2^32 is of no account here.
inline int32_t below(uint32_t word, int64_t n) {
  return static_cast<int32_t>(uint64_t{word} * static_cast<uint64_t>(n) >> 32);
}
/// A whole number in [-2^15, 2^15): sums of products of them are exact.
inline int64_t short_of(uint32_t word) { return int64_t{word >> 16} - 32768; }

}  // namespace tutti::data
