// Data checks of image models.
#pragma once
#include <string>

#include "core/base/export.h"
#include "train/task/model.h"

namespace tutti {

/// Throws Error(invalid), naming sides that would fit, unless the column "input" holds images [C, H, W] whose sides are
/// divisible by 2^halvings.
TUTTI_API void expect_images(const std::string& model, const ModelOptions& options, const data::Source& train,
                             int64_t halvings = 0);

/// The columns "input" and "label" of a data set of images.
struct TUTTI_API ImageClasses {
  Shape image;          ///< [C, H, W]
  int64_t classes = 0;  ///< at least 2
};
/// Throws Error(invalid) as expect_images does.
TUTTI_API ImageClasses image_classes(const std::string& model, const ModelOptions& o, const data::Source& train);

/// A data spec of synthetic images 3 x side x side with ten classes; for large sides at most 256 samples, because they
/// are kept in memory.
TUTTI_API std::string synthetic_images(int64_t side, int64_t samples);
/// The same with the side of the model's size: 16 for "tiny", 224 for "imagenet", else 32.
TUTTI_API std::string synthetic_sized_images(const ModelOptions& o, int64_t samples);

}  // namespace tutti
