// tutti help: help on a command or a topic, and the man pages.
#include <fmt/format.h>

#include <filesystem>

#include "cli/help/help.h"
#include "cli/output_file.h"
#include "cli/print.h"
#include "core/base/option_text.h"
#include "core/base/text.h"
#include "data/form.h"
#include "train/task/losses.h"
#include "train/task/model.h"

namespace tutti::cli {
namespace {

struct Topic {
  std::string name, doc;
  std::string (*text)();
};

/// "NAME (DOC)" as two columns.
std::string item(const std::string& name, const std::string& doc) {
  return fmt::format("  {}\n      {}\n", name, wrapped(doc, 6));
}

std::string data_text() {
  std::string text = "What --data takes:\n\n";
  for (const data::DataForm* f : data::all_data_forms()) {
    size_t at = f->form.find(" (");
    text += at == std::string::npos ? item(f->form, "")
                                    : item(f->form.substr(0, at), f->form.substr(at + 2, f->form.size() - at - 3));
  }
  return text;
}

std::string models_text() {
  std::string text = "Built-in models (`tutti models` lists their sizes and parameters):\n\n";
  for (const ModelDef* m : all_models()) text += item(m->name, m->doc);
  return text + "\nA model may also be a file: JSON (docs/LAYERS.md), ONNX, or a checkpoint.\n";
}

const std::vector<Topic>& topics() {
  static const std::vector<Topic> all = {
      {"data", "what --data takes", data_text},
      {"models", "built-in models", models_text},
      {"losses", "what --loss takes", [] { return wrapped("What --loss takes: " + losses_text(), 2) + "\n"; }},
  };
  return all;
}

struct HelpCommand {
  CLI::App* app;
  std::string topic, man;

  int operator()() {
    if (!man.empty()) return write_man_pages();
    if (topic.empty()) {
      print_out("{}\nTopics of `tutti help`\n", app->get_formatter()->make_help(app, "", CLI::AppFormatMode::Normal));
      for (const Topic& t : topics()) print_out("  {:<28}{}\n", t.name, t.doc);
      return done;
    }
    std::vector<std::string> known;
    for (const Topic& t : topics()) {
      if (t.name == topic) return print_out("{}", t.text()), done;
      known.push_back(t.name);
    }
    for (const CLI::App* sub : app->get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); })) {
      if (sub->get_name() == topic) return print_out("{}", sub->help()), done;
      known.push_back(sub->get_name());
    }
    throw invalid(fmt::format("help {}: no such command or topic", topic), did_you_mean(topic, known));
  }

  int write_man_pages() const {
    std::error_code failure;
    std::filesystem::create_directories(man, failure);
    if (failure) throw invalid_option("man", man, failure.message(), "name a folder that can be written");
    write_target(man + "/tutti.1", man_page(*app));
    for (const CLI::App* sub : app->get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); }))
      write_target(fmt::format("{}/tutti-{}.1", man, sub->get_name()), man_page(*sub));
    return done;
  }
};

}  // namespace

void add_help(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("help", "Show help on a command, or on data or models");
  static HelpCommand c;
  c.app = &app;
  sub->add_option("TOPIC", c.topic, "A command, data, models or losses (default: the list of commands)");
  sub->add_option("--man", c.man, "Write the man pages of all commands to this folder");
  sub->callback([&action] { action = [] { return c(); }; });
}

}  // namespace tutti::cli
