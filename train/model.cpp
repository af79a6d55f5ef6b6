#include "train/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/base/text.h"

namespace tutti {
namespace {

std::string scheme_name(nn::Scheme scheme) {
  switch (scheme) {
    case nn::Scheme::torch_default: return "torch";
    case nn::Scheme::kaiming_uniform: return "kaiming_uniform";
    case nn::Scheme::kaiming_normal: return "kaiming_normal";
    case nn::Scheme::xavier_uniform: return "xavier_uniform";
    case nn::Scheme::kaiming_normal_out: return "kaiming_normal_out";
    case nn::Scheme::xavier_normal: return "xavier_normal";
  }
  return "";
}

}  // namespace

const ModelSize& ModelDef::size(const std::string& wanted) const {
  std::vector<std::string> names;
  for (const ModelSize& s : sizes) {
    if (wanted.empty() || s.name == wanted) return s;
    names.push_back(s.name);
  }
  throw invalid(fmt::format("{} has no size '{}'", name, wanted), "use " + alternatives(names));
}

void ModelDef::check(const ModelOptions& o) const {
  const ModelOptions plain;
  struct Option {
    const char* name;
    bool set;
    std::string value;
  };
  const Option all[] = {
      {"layers", o.layers != plain.layers, o.layers},
      {"activation", o.net.activation != plain.net.activation, o.net.activation},
      {"dropout", o.net.dropout != plain.net.dropout, fmt::format("{}", o.net.dropout)},
      {"init", o.net.init != plain.net.init, scheme_name(o.net.init)},
      {"loss", o.loss != plain.loss, o.loss},
  };
  for (const Option& option : all) {
    if (!option.set || takes_option(option.name, o.size)) continue;
    std::vector<std::string> others;
    for (const ModelDef* m : all_models())
      if (m != this && m->takes.contains(option.name)) others.push_back(m->name);
    const bool of_size = takes.contains(option.name);
    throw invalid(fmt::format("{}: has no effect on {}{}", option_text(option.name, option.value), name,
                              of_size ? fmt::format(" of size {}", size(o.size).name) : ""),
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
  throw invalid(name.empty() ? "no model given" : fmt::format("unknown model '{}'", name),
                "use " + alternatives(names));
}

}  // namespace tutti
