// Integer division and alignment, rounding up.
#pragma once
#include <type_traits>

namespace tutti {

/// n / by, rounded up; n >= 0, by > 0.
template <class N, class By>
constexpr std::common_type_t<N, By> ceil_div(N n, By by) {
  return (n + by - 1) / by;
}

/// The smallest multiple of `to` that is >= n; n >= 0, to > 0.
template <class N, class To>
constexpr std::common_type_t<N, To> align_up(N n, To to) {
  return ceil_div(n, to) * to;
}

}  // namespace tutti
