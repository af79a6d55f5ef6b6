#include "train/hf/labels.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "train/task/images.h"

namespace tutti::hf {

int64_t labels_of(Config& c) {
  int64_t named = c.entries("id2label");
  return c.integer("num_labels", named > 0 ? named : 2);
}

int64_t classes_for(bool new_head, const ModelOptions& o, const data::Source& train, int64_t classes) {
  std::vector<data::Column> all = train.columns();
  auto label = std::ranges::find_if(all, [](const data::Column& c) { return c.name == "label"; });
  int64_t there = label == all.end() ? 0 : label->classes;
  if (new_head && there > 1) return there;
  if (there > classes)
    throw invalid(fmt::format("{} has {} classes, but the model has {}", o.data, there, classes),
                  "train it on this data first: `tutti train` replaces its last layer");
  return classes;
}

void expect_image_shape(const ModelOptions& o, const data::Source& train, const Shape& shape) {
  const Shape there = train.column("input").type.shape;
  if (there != shape)
    throw invalid(fmt::format("the model needs images {}, but {} has {}", to_string(shape), o.data, to_string(there)),
                  "resize the images");
}

void expect_channels(const ModelOptions& o, const data::Source& train, int64_t channels) {
  int64_t there = train.column("input").type.shape.at(0);
  if (there != channels)
    throw invalid(fmt::format("the model needs images of {} channels, but {} has {}", channels, o.data, there),
                  "use other images");
}

std::string synthetic_classes(int64_t channels, int64_t side, int64_t classes, int64_t samples) {
  return fmt::format("synthetic:{0}x{1}x{1}:{2}:{3}:16", channels, side, std::max<int64_t>(classes, 2),
                     side < 128 ? samples : std::min<int64_t>(samples, 256));
}

}  // namespace tutti::hf
