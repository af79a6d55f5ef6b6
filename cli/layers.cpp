// tutti layers: lists the layers for model descriptions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.h"
#include "nn/kind.h"
#include "train/task/losses.h"

namespace tutti::cli {
namespace {

using Json = nlohmann::ordered_json;

int list_layers(bool json) {
  Json all = Json::array();
  for (const nn::LayerKind* k : nn::all_layer_kinds()) {
    Json arguments = Json::array();
    std::vector<std::string> words;
    for (const nn::Argument& a : k->arguments) {
      std::string value = default_of(a);
      arguments.push_back({{"name", a.name},
                           {"type", name_of(a.type)},
                           {"default", value.empty() ? Json() : Json(value)},
                           {"doc", a.doc}});
      words.push_back(value.empty() ? a.name : fmt::format("{} = {}", a.name, value));
    }
    if (!json) fmt::print("{:<24} {}\n", k->name, k->doc);
    if (!json && !words.empty()) fmt::print("{:<24} {}\n", "", fmt::join(words, ", "));
    all.push_back({{"name", k->name}, {"doc", k->doc}, {"arguments", arguments}});
  }
  Json losses = Json::array();
  if (!json) fmt::print("\nlosses\n");
  for (const Loss& l : all_losses()) {
    if (!json) fmt::print("{:<24} {}\n", l.name, l.doc);
    losses.push_back({{"name", l.name}, {"doc", l.doc}});
  }
  if (json) print_json({{"layers", all}, {"losses", losses}});
  return done;
}

/// Prints the last part of docs/LAYERS.md.
int print_markdown() {
  fmt::print("{}\n| loss | is |\n| --- | --- |\n", nn::layers_markdown());
  for (const Loss& l : all_losses()) fmt::print("| `{}` | {} |\n", l.name, l.doc);
  return done;
}

}  // namespace

void add_layers(CLI::App& app, Action& action) {
  CLI::App* sub =
      app.add_subcommand("layers", "List the layers and losses that a model description can use, with their arguments");
  static bool json = false, markdown = false;
  sub->add_flag("--markdown", markdown, "Print the tables of docs/LAYERS.md");
  add_json_flag(*sub, json);
  sub->callback([&action] { action = [] { return markdown ? print_markdown() : list_layers(json); }; });
}

}  // namespace tutti::cli
