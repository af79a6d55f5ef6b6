// The pixels of a data set, as numbers.
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/export.h"
#include "data/source.h"

namespace tutti::data {

/// Mean and standard deviation (of the population, as torch.std with correction=0) of the images' pixels per channel;
/// those of one byte count as lying in [0, 1].
struct TUTTI_API Pixels {
  std::vector<double> mean, deviation;
  int64_t samples = 0;  ///< that were looked at: all, or `most` at even distances
};

/// Of the column "input" [C, H, W]. Throws Error(invalid) where the set has no such images, and for a channel whose
/// pixels are all the same.
TUTTI_API Pixels pixels_of(const Source& set, int64_t most = 20000);

}  // namespace tutti::data
