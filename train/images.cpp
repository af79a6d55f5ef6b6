#include "train/images.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"

namespace tutti {

ImageClasses image_classes(const std::string& model, const ModelOptions& o, const data::Source& train) {
  data::Column image = train.column("input"), label = train.column("label");
  if (image.type.shape.size() != 3)
    throw invalid(fmt::format("{} takes images [C, H, W], {} has {}", model, o.data, to_string(image.type)),
                  "use --data synthetic:3x32x32:10, or the model mlp");
  return {.image = image.type.shape, .classes = std::max<int64_t>(label.classes, 2)};
}

std::string made_up_images(int64_t side, int64_t samples) {
  return fmt::format("synthetic:3x{0}x{0}:10:{1}:16", side, side < 128 ? samples : std::min<int64_t>(samples, 256));
}

}  // namespace tutti
