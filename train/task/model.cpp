#include "train/task/model.h"

#include <fmt/format.h>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "train/task/model_option.h"

namespace tutti {
const ModelSize& ModelDef::size(const std::string& wanted) const {
  std::vector<std::string> names;
  for (const ModelSize& s : sizes) {
    if (wanted.empty() || s.name == wanted) return s;
    names.push_back(s.name);
  }
  throw OptionError(invalid(fmt::format("{} has no size '{}'", name, wanted), "use " + alternatives(names)), "size");
}

void ModelDef::check(const ModelOptions& o) const {
  for (const ModelOption& option : model_options()) {
    const std::string name_of(option.name);
    if (option.scope != ModelOption::Scope::listed || !option.set(o) || option.applies(*this, o.size)) continue;
    std::vector<std::string> others;
    for (const ModelDef* m : all_models())
      if (m != this && m->takes.contains(name_of)) others.push_back(m->name);
    const bool of_size = takes.contains(name_of);
    throw invalid_option(
        option.name, option.text(o),
        fmt::format("has no effect on {}{}", name, of_size ? fmt::format(" of size {}", size(o.size).name) : ""),
        !text.empty()    ? "omit this option: the file defines the model"
        : of_size        ? "omit this option, or choose another " + option_text("size")
        : others.empty() ? "omit this option: only models from files have it"
                         : fmt::format("omit this option, or train {}", alternatives(others)));
  }
}

Task ModelDef::task(const ModelOptions& options, const data::Source& train) const {
  check(options);
  return build(options, train);
}

const ModelDef& find_model(const std::string& name) {
  std::vector<std::string> names;
  for (const ModelDef* m : all_models()) {
    if (m->name == name) return *m;
    names.push_back(m->name);
  }
  throw OptionError(
      invalid(name.empty() ? "no model given" : fmt::format("unknown model '{}'", name), "use " + alternatives(names)),
      "model");
}

}  // namespace tutti
