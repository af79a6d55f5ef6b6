#include "train/task/images.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/option_text.h"
#include "core/base/status.h"

namespace tutti {

void expect_images(const std::string& model, const ModelOptions& o, const data::Source& train, int64_t halvings) {
  data::Column image = train.column("input");
  const Shape& s = image.type.shape;
  if (s.size() != 3)
    throw invalid(fmt::format("{} needs images [C, H, W], but {} has {}", model, o.data, to_string(image.type)),
                  "use " + option_text("data", "synthetic:3x32x32:10") + " or other images");
  int64_t unit = int64_t{1} << halvings;
  auto nearest = [&](int64_t side) { return std::max(unit, (side + unit / 2) / unit * unit); };
  if (s[1] % unit != 0 || s[2] % unit != 0 || s[1] == 0 || s[2] == 0)
    throw invalid(fmt::format("{} halves the height and width of an image {} times, but the images of {} are {}x{}",
                              model, halvings, o.data, s[1], s[2]),
                  fmt::format("use images whose height and width are multiples of {}, such as {}x{}", unit,
                              nearest(s[1]), nearest(s[2])));
}

ImageClasses image_classes(const std::string& model, const ModelOptions& o, const data::Source& train) {
  expect_images(model, o, train);
  return {.image = train.column("input").type.shape, .classes = std::max<int64_t>(train.column("label").classes, 2)};
}

std::string synthetic_images(int64_t side, int64_t samples) {
  return fmt::format("synthetic:3x{0}x{0}:10:{1}:16", side, side < 128 ? samples : std::min<int64_t>(samples, 256));
}

std::string synthetic_sized_images(const ModelOptions& o, int64_t samples) {
  return synthetic_images(o.size == "tiny" ? 16 : o.size == "imagenet" ? 224 : 32, samples);
}

}  // namespace tutti
