#include "train/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "core/base/text.h"

namespace tutti {

const ModelSize& ModelDef::size(const std::string& wanted) const {
  std::vector<std::string> names;
  for (const ModelSize& s : sizes) {
    if (wanted.empty() || s.name == wanted) return s;
    names.push_back(s.name);
  }
  throw invalid(fmt::format("{} has no size '{}'", name, wanted), "use " + alternatives(names));
}

void expect_images(const std::string& model, const ModelOptions& o, const data::Source& train, int64_t halvings) {
  data::Column image = train.column("input");
  const Shape& s = image.type.shape;
  if (s.size() != 3)
    throw invalid(fmt::format("{} takes images [C, H, W], {} has {}", model, o.data, to_string(image.type)),
                  "use --data shapes:32 or other images");
  int64_t unit = int64_t{1} << halvings;
  auto nearest = [&](int64_t side) { return std::max(unit, (side + unit / 2) / unit * unit); };
  if (s[1] % unit != 0 || s[2] % unit != 0 || s[1] == 0 || s[2] == 0)
    throw invalid(fmt::format("{} halves the sides of an image {} times, those of {} are {}x{}", model, halvings,
                              o.data, s[1], s[2]),
                  fmt::format("use sides that are multiples of {}, such as {}x{}", unit, nearest(s[1]), nearest(s[2])));
}

const ModelDef& find_model(const std::string& name) {
  std::vector<std::string> names;
  for (const ModelDef* m : all_models()) {
    if (m->name == name) return *m;
    names.push_back(m->name);
  }
  throw invalid(name.empty() ? "no model named" : fmt::format("unknown model '{}'", name),
                "use " + alternatives(names));
}

}  // namespace tutti
