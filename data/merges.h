// The merges of byte pair encoding.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tutti::data {

/// What a pair of tokens becomes. Lower ranks come first.
struct Merge {
  int32_t rank, token;
};
/// By merge_key() of both tokens.
using Merges = std::unordered_map<uint64_t, Merge>;

inline uint64_t merge_key(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

/// Merges the pair of the lowest rank, the leftmost first, until no pair can be merged: O(n log n).
std::vector<int32_t> merged(const Merges& merges, std::vector<int32_t> tokens);

}  // namespace tutti::data
