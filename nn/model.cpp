#include "nn/model.h"

#include <fmt/format.h>

#include "core/base/status.h"
#include "core/base/text.h"

namespace tutti::nn {

const ModelDef& find_model(const std::string& name) {
  std::vector<std::string> names;
  for (const ModelDef* m : all_models()) {
    if (m->name == name) return *m;
    names.push_back(m->name);
  }
  throw invalid(name.empty() ? "no model named" : fmt::format("unknown model '{}'", name),
                "use " + alternatives(names));
}

}  // namespace tutti::nn
