// How near kernels come to what their device reaches at best.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "bench/result.h"
#include "train/precision.h"
#include "train/profile.h"

namespace tutti::cli {

/// Peaks of the devices of a profile.
class Rooflines {
 public:
  /// Measures each device of the programs, some seconds: products in the dtypes that the programs multiply in, sums.
  /// What a device cannot run has no peak.
  Rooflines(const std::vector<ProfiledProgram>& programs, Precision precision, int threads);

  struct Share {
    double of_peak = 0;  ///< the least possible time over `seconds`
    const char* bound;   ///< "products" or "memory"
  };
  /// Nothing where the peak is unknown or the work is not counted.
  std::optional<Share> share(const ProfiledProgram& program, const ProfiledWork& work, double seconds) const;
  const std::map<std::string, bench::Peaks>& peaks() const { return peaks_; }  ///< by device

 private:
  std::map<std::string, bench::Peaks> peaks_;
  Precision precision_;
};

}  // namespace tutti::cli
