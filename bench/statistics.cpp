#include "bench/statistics.h"

#include <algorithm>
#include <cmath>

namespace tutti::bench {

Statistics summarize(std::vector<double> numbers) {
  if (numbers.empty()) return {};
  std::ranges::sort(numbers);
  auto at = [&](double share) {
    double place = share * static_cast<double>(numbers.size() - 1), whole = std::floor(place);
    auto i = static_cast<size_t>(whole);
    double low = numbers[i], high = numbers[std::min(i + 1, numbers.size() - 1)];
    return low + (place - whole) * (high - low);
  };
  return {static_cast<int64_t>(numbers.size()), numbers.front(), at(0.25), at(0.5), at(0.75), numbers.back()};
}

}  // namespace tutti::bench
