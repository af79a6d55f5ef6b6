// Declares the options of a run on the command line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "cli/help/help.h"
#include "cli/number.h"
#include "cli/open_model.h"
#include "cli/run_options.h"
#include "data/form.h"

namespace tutti::cli {
namespace {

/// Declares an option that sets `value`: a switch for a bool, with a check for a number.
template <class V>
CLI::Option* add_value(CLI::App& sub, std::string_view option, V& value, const std::string& doc,
                       OptionForm form = OptionForm::plain) {
  const std::string flag = fmt::format("--{}", option);
  if constexpr (std::is_same_v<V, bool>) return sub.add_flag(flag, value, doc);
  if constexpr (std::is_same_v<V, std::string>)
    if (form == OptionForm::flag) return sub.add_flag(flag, value, doc);
  CLI::Option* added = sub.add_option(flag, value, doc);
  if (form == OptionForm::bytes) return added->transform(CLI::Validator(size_in_bytes, ""))->type_name("SIZE");
  if (form == OptionForm::number) return added->transform(CLI::Validator(shortest_number, ""))->type_name("FLOAT");
  if constexpr (std::is_same_v<V, double>) return added->check(real);
  if constexpr (std::is_integral_v<V> && !std::is_same_v<V, bool>) return added->check(whole<V>);
  return added;
}

template <class T>
CLI::Option* add_value(CLI::App& sub, const OptionRecord<T>& option, T& settings) {
  CLI::Option* added = std::visit(
      [&](auto field) { return add_value(sub, option.name, settings.*field, option.doc, option.form); }, option.field);
  if (option.number(settings) == option.unset) added->default_str("");
  return added;
}

/// `--help` shows only options with an example.
void shorten_help(const CLI::App& sub, std::string_view option, std::string_view example) {
  if (example.empty())
    rarely_used(sub, std::string(option));
  else
    with_example(sub, std::string(option), std::string(example));
}

}  // namespace

void add_data_options(CLI::App& sub, data::OpenOptions& open) {
  for (const data::DataOption& option : data::data_options()) add_value(sub, option, open);
}

CLI::Option* RunOptions::declare(CLI::Option* option, Declared as) {
  as.option = option;
  options_.insert_or_assign(option->get_lnames().empty() ? "model" : option->get_lnames()[0], std::move(as));
  return option;
}

template <class T>
CLI::Option* RunOptions::add_record(CLI::App& sub, const OptionRecord<T>& option, T RunOptions::*settings) {
  CLI::Option* added = option.parse
                           ? add_value(sub, option.name, texts.find(option.name)->second, option.doc, option.form)
                           : add_value(sub, option, this->*settings);
  auto text = [&option, settings](const RunOptions& run) {
    return option.parse ? run.text(option.name) : option.value(run.*settings);
  };
  return declare(added->group(std::string(option.group)), {nullptr, option.scope, text, option.default_text()});
}

CLI::Option* RunOptions::add_record(CLI::App& sub, const ModelOption& option) {
  const bool inits = std::holds_alternative<ModelOption::Field<nn::Scheme>>(option.field);
  CLI::Option* added = std::visit(
      [&](auto field) {
        if constexpr (std::is_same_v<decltype(field), ModelOption::Field<nn::Scheme>>)
          return add_value(sub, option.name, init, option.doc);
        else
          return add_value(sub, option.name, field(model_values), option.doc);
      },
      option.field);
  auto text = [&option, inits](const RunOptions& run) { return inits ? run.init : option.text(run.model_values); };
  const OptionScope scope = option.in_training ? OptionScope::training : OptionScope::run;
  return declare(added->group(std::string(option.group)), {nullptr, scope, text});
}

CLI::Option* RunOptions::add(CLI::App& sub, std::string_view name) {
  for (const ModelOption& option : tutti::model_options())
    if (option.name == name) return add_record(sub, option);
  for (const RunOption& option : run_options())
    if (option.name == name) return add_record(sub, option, &RunOptions::settings);
  for (const TrainerOption& option : tutti::trainer_options())
    if (option.name == name) return add_record(sub, option, &RunOptions::trainer);
  throw std::logic_error(fmt::format("no option has the name {}", name));
}

template <class T>
void RunOptions::add_records(CLI::App& sub, std::span<const OptionRecord<T>> records, T RunOptions::*settings,
                             bool trains) {
  using enum OptionScope;
  for (const OptionRecord<T>& option : records) {
    if (option.scope == library || (!trains && (option.scope == train || option.scope == once))) continue;
    add_record(sub, option, settings);
    shorten_help(sub, option.name, option.example);
  }
}

void RunOptions::add_model_options(CLI::App& sub, std::string_view group) {
  for (const ModelOption& option : tutti::model_options()) {
    if (option.group != group) continue;
    add_record(sub, option);
    shorten_help(sub, option.name, option.example);
  }
}

void RunOptions::add_to(CLI::App& sub, bool trains) {
  declare(sub.add_option("model", model,
                         fmt::format("A built-in model (`tutti help models`), or the path of {}", model_files))
              ->group("Model"),
          {.text = [](const RunOptions& run) { return run.model; }});
  add_model_options(sub, "Model");
  sub.get_option("--dropout")->default_str("");  // the model's
  std::set<std::string> kinds;
  for (const data::DataForm* f : data::all_data_forms()) kinds.insert(f->name);
  declare(sub.add_option("--data", data,
                         fmt::format("{} (`tutti help data`; default: the model's)", fmt::join(kinds, ", ")))
              ->group("Data"),
          {.text = [](const RunOptions& run) { return run.data; }});
  shorten_help(sub, "data", "csv:table.csv");
  add_records(sub, data::data_options(), &RunOptions::open, trains);
  add_model_options(sub, "Data");
  add_records(sub, run_options(), &RunOptions::settings, trains);
  add_records(sub, tutti::trainer_options(), &RunOptions::trainer, trains);
  CLI::Option* batch = sub.get_option("--batch");
  if (trainer.batch == 0) batch->description("Batch size (default: the model's)")->default_str("");
}

void RunOptions::hide_training(CLI::App& sub, const std::set<std::string>& unused) {
  for (auto& [name, declared] : options_) {
    if (declared.scope != OptionScope::training && !unused.contains(name)) continue;
    unused_.insert(name);
    declared.option->group("");
  }
  subcommand_ = sub.get_name();
}

void RunOptions::leave_out(CLI::App& sub, std::initializer_list<const char*> options) {
  for (const char* option : options) {
    sub.remove_option(options_.at(option).option);
    options_.erase(option);
  }
}

}  // namespace tutti::cli
