// Declares the options of a run on the command line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/help/help.h"
#include "cli/number.h"
#include "cli/open_model.h"
#include "cli/run_options.h"
#include "data/form.h"

namespace tutti::cli {
namespace {

/// Lists data kinds, models or optimizers for help texts.
template <class All, class F>
std::string listed(const All& all, F&& text, const char* separator) {
  std::vector<std::string> parts;
  for (const auto& one : all) parts.push_back(text(one));
  return fmt::format("{}", fmt::join(parts, separator));
}

}  // namespace

std::vector<CLI::Option*> add_data_options(CLI::App& sub, data::OpenOptions& open) {
  std::vector<CLI::Option*> all;
  for (const data::DataOption& option : data::data_options())
    all.push_back(std::visit(
        [&](auto field) {
          CLI::Option* o = add_value(sub, option.name, open.*field, option.doc);
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(open.*field)>, double>) o->default_str("");
          return o;
        },
        option.field));
  return all;
}

CLI::Option* add_run_option(CLI::App& sub, const RunOption& option, RunSettings& settings) {
  return std::visit([&](auto member) { return add_value(sub, option.name, settings.*member, option.doc); },
                    option.field)
      ->group(std::string(option.group));
}

void RunOptions::declare(CLI::Option* option, const char* group) {
  option->group(group);
  options_.emplace(option->get_lnames().empty() ? "model" : option->get_lnames()[0], option);
}

void RunOptions::add_to(CLI::App& sub) {
  const std::vector<CLI::Option*> before = sub.get_options();
  add_model(sub);
  add_data(sub);
  add_trainer(sub);
  add_training(sub);
  add_device(sub);
  shorten_help(sub, {before.begin(), before.end()});
}

/// `--help` shows what most runs use, with an example.
void RunOptions::shorten_help(CLI::App& sub, const std::set<CLI::Option*>& before) {
  const std::map<std::string, const char*> common = {
      {"size", "tiny"},      {"data", "csv:table.csv"}, {"batch", "64"}, {"epochs", "5"},
      {"steps", "1000"},     {"optimizer", "adamw"},    {"lr", "0.001"}, {"schedule", "cosine"},
      {"precision", "bf16"}, {"device", "gpu"}};
  for (CLI::Option* o : sub.get_options()) {
    if (before.contains(o) || o->get_lnames().empty()) continue;
    auto it = common.find(o->get_lnames()[0]);
    if (it != common.end())
      with_example(sub, it->first, it->second);
    else
      rarely_used(sub, o->get_lnames()[0]);
  }
}

void RunOptions::add_model(CLI::App& sub) {
  const char* m = "Model";
  declare(sub.add_option("model", model,
                         fmt::format("A built-in model (`tutti help models`), or the path of {}", model_files)),
          m);
  add_model_options(sub, m);
  sub.get_option("--dropout")->default_str("");  // the model's
}

CLI::Option* RunOptions::add_model_option(CLI::App& sub, const ModelOption& option) {
  return std::visit(
      [&](auto field) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field(model_values))>, nn::Scheme>)
          return add_value(sub, option.name, init, option.doc);
        else
          return add_value(sub, option.name, field(model_values), option.doc);
      },
      option.field);
}

void RunOptions::add_model_options(CLI::App& sub, std::string_view group) {
  for (const ModelOption& option : tutti::model_options())
    if (option.group == group) declare(add_model_option(sub, option), group.data());
}

void RunOptions::add_data(CLI::App& sub) {
  const char* d = "Data";
  std::set<std::string> kinds;
  for (const data::DataForm* f : data::all_data_forms()) kinds.insert(f->name);
  declare(sub.add_option("--data", data,
                         fmt::format("{} (`tutti help data`; default: the model's)", fmt::join(kinds, ", "))),
          d);
  for (CLI::Option* option : add_data_options(sub, open)) declare(option, d);
  add_model_options(sub, d);
}

void RunOptions::add_training(CLI::App& sub) {
  const char* t = "Training";
  declare(sub.add_option("--memory-budget", memory_budget,
                         "Limit on the run's device memory (2GiB, 1.5GiB, 800MiB): recomputes as few blocks as needed")
              ->transform(CLI::Validator(size_in_bytes, ""))
              ->type_name("SIZE"),
          t);
  declare(sub.add_option("--epochs", epochs,
                         "Total number of passes over the training set; a resumed run counts earlier ones")
              ->check(whole<int64_t>),
          t);
  declare(sub.add_option("--steps", steps, "Stop after N steps in total (0: use --epochs)")->check(whole<int64_t>), t);
  declare(sub.add_option("--optimizer", optimizer,
                         listed(
                             all_optimizers(), [](const Optimizer& o) { return name(o); }, ", ") +
                             " (the model's unless given)"),
          t);
  add_hyperparameters(sub, t);
}

void RunOptions::add_device(CLI::App& sub) {
  sub.add_option(
         "--device", device,
         fmt::format("auto, an id (vulkan:1), a plugin (opencl), a kind (cpu, gpu), or a pattern (\"NVIDIA*\"){}",
                     sub.get_name() == "train" ? ", or fastest: by timing steps of the model" : ""))
      ->group("Device");
  sub.add_option("--fallback", fallback,
                 "cpu: run nodes that the device does not support on the CPU (default: an error)")
      ->check([](const std::string& text) { return text == "cpu" ? "" : fmt::format("'{}' is not cpu", text); })
      ->group("Device");
  sub.add_option("--threads", threads, "CPU threads (0: chosen by the plugin)")->check(whole<int>)->group("Device");
}

CLI::Option* RunOptions::add_trainer_option(CLI::App& sub, const TrainerOption& option) {
  CLI::Option* added =
      option.parse ? add_value(sub, option.name, texts.at(std::string(option.name)), option.doc)
                   : std::visit([&](auto member) { return add_value(sub, option.name, trainer.*member, option.doc); },
                                option.field);
  if (option.number(trainer) == option.unset) added->default_str("");
  return added->group(std::string(option.group));
}

/// Options with a TrainerOption record that every command with a model takes.
void RunOptions::add_trainer(CLI::App& sub) {
  using enum TrainerOption::Scope;
  for (const TrainerOption& option : tutti::trainer_options()) {
    if (option.scope == train || option.scope == library) continue;
    CLI::Option* added = add_trainer_option(sub, option);
    if (option.scope == machine)
      machine_.emplace_back(&option, added);
    else
      remember(added);
  }
  CLI::Option* batch = sub.get_option("--batch");
  if (trainer.batch == 0) batch->description("Batch size (default: the model's)")->default_str("");
}

/// One option for each name that some optimizer has.
void RunOptions::add_hyperparameters(CLI::App& sub, const char* group) {
  struct Known {
    Hyperparameter h;
    std::vector<std::string> defaults;
  };
  std::map<std::string, Known> all;
  for (Optimizer o : all_optimizers())
    for (const Hyperparameter& h : tutti::hyperparameters(o)) {
      Known& k = all.try_emplace(h.option, Known{h, {}}).first->second;
      k.defaults.push_back(h.flag ? name(o) : fmt::format("{} {}", name(o), *h.value));
    }
  for (auto& [option, known] : all) {
    std::string help = fmt::format("{} ({})", known.h.doc, fmt::join(known.defaults, ", "));
    std::optional<double>& value = hyperparameters[option];
    CLI::Option* o = known.h.flag ? sub.add_flag_callback(
                                        "--" + option, [&value] { value = 1; }, help)
                                  : sub.add_option("--" + option, value, help)->check(real)->default_str("");
    options_.emplace(option, o->group(group));
  }
}

void RunOptions::hide_training(CLI::App& sub, const std::set<std::string>& unused) {
  unused_ = {"epochs", "steps", "optimizer", "memory-budget", "dropout"};
  for (const TrainerOption& option : tutti::trainer_options())
    if (option.scope == TrainerOption::Scope::training) unused_.emplace(option.name);
  for (const auto& [option, value] : hyperparameters) unused_.insert(option);
  unused_.insert(unused.begin(), unused.end());
  for (const std::string& option : unused_) sub.get_option("--" + option)->group("");
  subcommand_ = sub.get_name();
}

CLI::Option* RunOptions::remember(CLI::Option* option) {
  options_.emplace(option->get_lnames()[0], option);
  return option;
}

void RunOptions::leave_out_loading(CLI::App& sub) {
  std::erase_if(machine_,
                [&](const auto& item) { return item.first->group == "Data" && sub.remove_option(item.second); });
}

void RunOptions::leave_out(CLI::App& sub, const std::string& option) {
  options_.erase(option);
  sub.remove_option(sub.get_option("--" + option));
}

}  // namespace tutti::cli
