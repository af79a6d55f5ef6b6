// tutti completion: the scripts of bash, zsh and fish, and the words that they ask for.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/completion_scripts.h"
#include "cli/help/help.h"
#include "cli/print.h"
#include "core/base/text.h"
#include "core/runtime/registry.h"
#include "data/form.h"
#include "train/step/optimizer.h"
#include "train/task/losses.h"
#include "train/task/model.h"

namespace tutti::cli {
namespace {

std::vector<std::string> models() {
  std::vector<std::string> all;
  for (const ModelDef* m : all_models()) all.push_back(m->name);
  return all;
}

std::vector<std::string> devices() {
  std::vector<std::string> all = {"auto"};
  for (const Device& d : Registry::instance().devices()) all.push_back(d.id);
  return all;
}

std::vector<std::string> data_forms() {
  std::vector<std::string> all;
  for (const data::DataForm* f : data::all_data_forms()) all.push_back(f->name + (f->takes_arguments ? ":" : ""));
  return all;
}

std::vector<std::string> optimizers() {
  std::vector<std::string> all;
  for (const Optimizer& o : all_optimizers()) all.push_back(name(o));
  return all;
}

/// The sizes of the model on the command line, or of all models.
std::vector<std::string> sizes(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (const ModelDef* m : all_models())
    if (std::ranges::find(words, m->name) != words.end())
      for (const ModelSize& size : m->sizes) all.push_back(size.name);
  return all;
}

/// The values of an option; none: a file, a number or a text.
std::vector<std::string> values(const std::string& option, const std::vector<std::string>& words) {
  if (option == "--device" || option == "--a" || option == "--b") return devices();
  if (option == "--data") return data_forms();
  if (option == "--optimizer") return optimizers();
  if (option == "--size") return sizes(words);
  if (option == "--precision") return {"f32", "tf32", "bf16", "f16", "f64"};
  return {};
}

std::vector<std::string> commands(const CLI::App& app) {
  std::vector<std::string> all;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); }))
    all.push_back(sub->get_name());
  return all;
}

const CLI::App* command(const CLI::App& app, const std::string& name) {
  auto all = app.get_subcommands([&](const CLI::App* c) { return c->get_name() == name; });
  return all.empty() ? nullptr : all[0];
}

std::vector<std::string> options(const CLI::App& sub) {
  std::vector<std::string> all;
  for (const CLI::Option* o : sub.get_options([](const CLI::Option* o) { return !o->get_group().empty(); }))
    for (const std::string& name : o->get_lnames()) all.push_back("--" + name);
  return all;
}

std::vector<std::string> candidates(const CLI::App& app, const std::vector<std::string>& words, size_t at) {
  const std::string& typed = words[at];
  if (at == 1) return typed.starts_with('-') ? options(app) : commands(app);
  const CLI::App* sub = command(app, words[1]);
  if (!sub) return {};
  if (typed.starts_with('-')) return options(*sub);
  const CLI::Option* before = words[at - 1].starts_with("--") ? sub->get_option_no_throw(words[at - 1]) : nullptr;
  if (before && before->get_items_expected_max() > 0) return values(words[at - 1], words);
  if (words[1] == "help") return commands(app);
  if (words[1] == "completion") return {"bash", "zsh", "fish"};
  return at == 2 && sub->get_option_no_throw("model") ? models() : std::vector<std::string>{};
}

struct CompletionCommand {
  const CLI::App* app;
  size_t at = 0;
  std::vector<std::string> words;  // the shell, or the command line that is completed

  int operator()() const {
    if (at > 0) {
      for (const std::string& word : completions(*app, words, at)) print_out("{}\n", word);
      return done;
    }
    static const std::map<std::string, const char*> scripts = {
        {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};
    const std::string shell = words.empty() ? "" : words[0];
    auto it = scripts.find(shell);
    if (words.size() > 1 || it == scripts.end())
      throw invalid(fmt::format("completion '{}': unknown shell", shell), "use bash, zsh or fish");
    return print_out("{}", it->second), done;
  }
};

}  // namespace

std::vector<std::string> completions(const CLI::App& app, const std::vector<std::string>& words, size_t at) {
  if (at == 0 || at >= words.size()) return {};
  std::vector<std::string> all = candidates(app, words, at);
  std::erase_if(all, [&](const std::string& word) { return !word.starts_with(words[at]); });
  std::ranges::sort(all);
  return all;
}

void add_completion(CLI::App& app, Action& action) {
  auto* sub = app.add_subcommand("completion", "Print the completion script of a shell: bash, zsh or fish");
  sub->prefix_command();  // the words of the completed line may look like options
  static CompletionCommand c;
  c.app = &app;
  sub->add_option("--at", c.at, "For the scripts: print what may stand at this word")->group("");
  sub->footer("Example: source <(tutti completion bash)");
  sub->callback([&action, sub] {
    action = [sub] {
      c.words = sub->remaining();
      return c();
    };
  });
}

}  // namespace tutti::cli
