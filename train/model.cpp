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
