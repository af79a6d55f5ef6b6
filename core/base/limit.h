// The range of integers that a column of data may hold.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace tutti {

/// Integers in [low, end), and `except`, a label that is ignored.
struct Limit {
  int64_t low = 0, end = 0;
  std::optional<int64_t> except = {};
  std::string why = {};  ///< explains in messages why other integers are invalid; "" for indices
  bool holds(int64_t x) const { return (low <= x && x < end) || x == except; }
  /// The intersection of both.
  Limit operator&(const Limit& o) const {
    std::optional<int64_t> both = except && o.holds(*except)     ? except
                                  : o.except && holds(*o.except) ? o.except
                                                                 : std::nullopt;
    return {std::max(low, o.low), std::min(end, o.end), both, end <= o.end ? why : o.why};
  }
  bool operator==(const Limit&) const = default;
};

/// "[0, 3)", "[0, 3) and not -100".
inline std::string to_string(const Limit& l) {
  std::string text = "[" + std::to_string(l.low) + ", " + std::to_string(l.end) + ")";
  return l.except ? text + " and not " + std::to_string(*l.except) : text;
}

}  // namespace tutti
