// Classes and images of models with a classifier.
#pragma once
#include "train/hf/family.h"

namespace tutti::hf {

/// The number of classes of a config: num_labels, or those that id2label names; transformers' default is 2.
int64_t labels_of(Config& c);
/// The classes of the head for that data: those of the config, or with `new_head` those of the data. Throws
/// Error(invalid) if the data has more classes than the head.
int64_t classes_for(bool new_head, const ModelOptions& o, const data::Source& train, int64_t classes);
/// Throws Error(invalid) unless the column "input" has images of that shape [C, H, W].
void expect_image_shape(const ModelOptions& o, const data::Source& train, const Shape& shape);
void expect_channels(const ModelOptions& o, const data::Source& train, int64_t channels);
/// Synthetic images for such a model.
std::string synthetic_classes(int64_t channels, int64_t side, int64_t classes, int64_t samples);

}  // namespace tutti::hf
