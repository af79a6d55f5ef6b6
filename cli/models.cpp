// tutti models: lists models and their sizes.

#include <set>

#include "cli/command.h"
#include "cli/print.h"
#include "train/step/programs.h"
#include "train/task/model.h"

namespace tutti::cli {
namespace {

struct ModelRow {
  const ModelDef* model;
  const ModelSize* size;
  int64_t parameters;
  std::string data;
  std::set<std::string> ops;  ///< ops in a training step
};

/// Builds the model for its synthetic data.
ModelRow row_of(const ModelDef& m, const ModelSize& size) {
  ModelOptions options{.size = size.name};
  std::string data = m.synthetic(options, size.batch);
  data::Sources sources = data::open_data(data, {.context = m.context ? m.context(options) : 0});
  Programs programs(m.task(options, *sources.train), {.optimizer = optimizer_named(m.optimizer)});
  InputLayout form = layout_of(*sources.train, "train", true);
  ModelSignature declared = programs.declare(form);
  std::set<std::string> ops;
  Graph step = programs.training(form, size.batch);
  for (const Node& n : step.nodes()) ops.insert(n.op->name);
  int64_t n = 0;
  for (const nn::Parameter& p : declared.parameters) n += num_elements(p.type.shape);
  return {&m, &size, n, size.name != "tiny" && !m.data.empty() ? m.data : m.synthetic(options, 8192), std::move(ops)};
}

int list_models(bool json) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const ModelDef* m : all_models()) {
    nlohmann::ordered_json entry = {{"name", m->name}, {"doc", m->doc}, {"optimizer", m->optimizer}};
    if (!json) print_out("{}: {}\n", m->name, m->doc);
    for (const ModelSize& size : m->sizes) {
      ModelRow row = row_of(*m, size);
      double lr = size.lr > 0 ? size.lr : learning_rate(optimizer_named(m->optimizer));
      if (size.name == m->sizes[0].name) entry["ops"] = row.ops;
      entry["sizes"].push_back({{"name", size.name},
                                {"doc", size.doc},
                                {"parameters", row.parameters},
                                {"batch", size.batch},
                                {"lr", lr},
                                {"data", row.data}});
      if (!json)
        print_out("  {:<9} {:>11} parameters, batch {:<4} {}; {}, rate {}; data {}\n", size.name, row.parameters,
                  size.batch, size.doc, m->optimizer, lr, row.data);
    }
    out.push_back(std::move(entry));
  }
  if (json) print_json({{"models", out}});
  return done;
}

}  // namespace

void add_models(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("models", "List the built-in models");
  static bool json;
  add_json_flag(*sub, json);
  sub->callback([&action] { action = [] { return list_models(json); }; });
}

}  // namespace tutti::cli
