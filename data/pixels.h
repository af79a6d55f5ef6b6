// Statistics of a data set's pixels.
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/export.h"
#include "data/source.h"

namespace tutti::data {

/// Mean and standard deviation (of the population, as torch.std with correction=0) of the pixels per channel; u8 pixels
/// are scaled to [0, 1].
struct TUTTI_API Pixels {
  std::vector<double> mean, deviation;
  int64_t samples = 0;  ///< number of samples used: all, or `most` at equal distances
};

/// Statistics of the column "input" [C, H, W]. Throws Error(invalid) if the source has no such images, and for a
/// channel with constant pixels.
TUTTI_API Pixels pixels_of(const Source& set, int64_t most = 20000);

}  // namespace tutti::data
