// What classifiers of images ask of their data.
#pragma once
#include <string>

#include "core/base/export.h"
#include "train/model.h"

namespace tutti {

/// The columns "input" and "label" of a data set of images.
struct TUTTI_API ImageClasses {
  Shape image;          ///< [C, H, W]
  int64_t classes = 0;  ///< at least 2
};
/// Throws Error(invalid) that names the model and data that fit it where the samples are no images.
TUTTI_API ImageClasses image_classes(const std::string& model, const ModelOptions& o, const data::Source& train);

/// A spec of made-up images 3 x side x side of ten classes; of large ones at most 256, which are kept in memory.
TUTTI_API std::string made_up_images(int64_t side, int64_t samples);

}  // namespace tutti
