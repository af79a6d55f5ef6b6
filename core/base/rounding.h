// Whole numbers rounded up.
#pragma once
#include <type_traits>

namespace tutti {

/// n / by, rounded up; n is not negative, by is positive.
template <class N, class By>
constexpr std::common_type_t<N, By> ceil_div(N n, By by) {
  return (n + by - 1) / by;
}

/// The least multiple of `to` that is not below n; n is not negative, `to` is positive.
template <class N, class To>
constexpr std::common_type_t<N, To> align_up(N n, To to) {
  return ceil_div(n, to) * to;
}

}  // namespace tutti
