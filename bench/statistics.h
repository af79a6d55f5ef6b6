// Summary statistics of repeated measurements.
#pragma once
#include <cstdint>
#include <vector>

namespace tutti::bench {

/// Statistics of a list of numbers; all 0 for an empty list.
struct Statistics {
  int64_t count = 0;
  double least = 0, q1 = 0, median = 0, q3 = 0, most = 0;
};

/// Quartiles are interpolated linearly, like NumPy's default.
Statistics summarize(std::vector<double> numbers);

}  // namespace tutti::bench
