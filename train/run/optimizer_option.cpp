// The optimizer and its hyperparameters as options.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <optional>
#include <vector>

#include "core/base/text.h"
#include "train/run/trainer_option.h"

namespace tutti {
namespace {

/// Sets a hyperparameter. Optimizers without it accept 0.
void set(Optimizer& optimizer, const std::string& option, const std::string& text) {
  const auto x = text == "true" ? 1 : text == "false" ? 0 : parse_number<double>(text);
  if (!x) throw invalid_option(option, text, "is not a number");
  std::vector<std::string> known;
  for (const Hyperparameter& h : hyperparameters(optimizer)) {
    known.push_back(option_text(h.option));
    if (h.option != option) continue;
    if (h.flag)
      *h.flag = *x != 0;
    else
      *h.value = *x;
    if (*x >= 0) return;
    check(optimizer);  // may know a smaller range
    throw invalid_option(option, text, "must be at least 0");
  }
  if (*x != 0)
    throw OptionError(invalid(fmt::format("{} is not a hyperparameter of {}", option_text(option), name(optimizer)),
                              fmt::format("{} has {}", name(optimizer), fmt::join(known, ", "))),
                      option);
}

TrainerOption record_of(const Hyperparameter& h) {
  const std::string option = h.option;
  return {.name = h.option,
          .group = "Training",
          .parse = [option](TrainerOptions& o, const std::string& text, int64_t) { set(o.optimizer, option, text); },
          .doc = h.doc,
          .scope = OptionScope::training,
          .form = h.flag ? OptionForm::flag : OptionForm::number,
          .keyword = false,
          .example = option == "lr" ? "0.001" : ""};
}

}  // namespace

std::vector<TrainerOption> optimizer_records() {
  std::vector<std::string> names;
  std::map<std::string, TrainerOption> parameters;           // of all optimizers, by name
  std::map<std::string, std::vector<std::string>> defaults;  // "sgd 0.01"
  for (Optimizer o : all_optimizers()) {
    names.push_back(name(o));
    for (const Hyperparameter& h : hyperparameters(o)) {
      parameters.try_emplace(h.option, record_of(h));
      defaults[h.option].push_back(h.flag ? name(o) : fmt::format("{} {}", name(o), *h.value));
    }
  }
  std::vector<TrainerOption> all = {
      {.name = "optimizer",
       .group = "Training",
       .parse = [](TrainerOptions& o, const std::string& text, int64_t) { o.optimizer = optimizer_named(text); },
       .doc = fmt::format("{} (default: the model's)", fmt::join(names, ", ")),
       .scope = OptionScope::training,
       .keyword = false,
       .example = "adamw"}};
  for (auto& [option, record] : parameters) {
    record.doc += fmt::format(" ({})", fmt::join(defaults[option], ", "));
    all.push_back(std::move(record));
  }
  return all;
}

}  // namespace tutti
