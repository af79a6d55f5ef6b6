// Compares kernel times with the device's roofline.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "bench/result.h"
#include "train/run/profile.h"
#include "train/step/precision.h"

namespace tutti::cli {

/// Peaks of the devices of a profile.
class Rooflines {
 public:
  /// Benchmarks each device of the programs for some seconds: products in the dtypes that the programs use, and sums.
  /// Work that a device cannot run has no peak.
  Rooflines(const std::vector<ProfiledProgram>& programs, Precision precision, int threads);

  struct Share {
    double of_peak = 0;  ///< roofline time divided by `seconds`
    const char* bound;   ///< "products" or "memory"
  };
  /// None if the peak is unknown or the work is not counted.
  std::optional<Share> share(const ProfiledProgram& program, const ProfiledWork& work, double seconds) const;
  const std::map<std::string, bench::Peaks>& peaks() const { return peaks_; }  ///< by device

 private:
  std::map<std::string, bench::Peaks> peaks_;
  Precision precision_;
};

}  // namespace tutti::cli
