// tutti new-model: creates a model file and its PyTorch equivalent from a template.
#include <fmt/format.h>

#include <cctype>
#include <filesystem>

#include "cli/command.h"
#include "cli/new_model_templates.h"
#include "cli/output_file.h"
#include "cli/print.h"
#include "core/base/status.h"
#include "train/task/model.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

/// "my_model" as "MyModel".
std::string class_name(const std::string& name) {
  std::string out;
  bool start = true;
  for (char c : name) {
    if (c != '_') out += start ? static_cast<char>(std::toupper(c)) : c;
    start = c == '_';
  }
  return out;
}

std::string filled(std::string text, const std::string& name) {
  for (const auto& [mark, value] : {std::pair<std::string, std::string>("@NAME@", name), {"@CLASS@", class_name(name)}})
    for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += value.size())
      text.replace(at, mark.size(), value);
  return text;
}

struct NewModel {
  std::string name, root = ".";
  bool json = false;

  int operator()() const {
    auto plain = [](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; };
    if (name.empty() || !is_letter(name[0]) || name.size() > 32 || !std::ranges::all_of(name, plain))
      throw invalid(
          fmt::format("the name '{}' must begin with a-z and consist of at most 32 characters a-z, 0-9 and _", name),
          "tutti new-model my_model");
    for (const ModelDef* m : all_models())
      if (m->name == name) throw invalid(fmt::format("a model named '{}' already exists", name), "use another name");
    const std::pair<std::string, const char*> files[] = {{fmt::format("train/models/{}.cpp", name), model_template},
                                                         {fmt::format("bench/peers/zoo/{}.py", name), twin_template}};
    for (const auto& [file, text] : files) {
      fs::path path = fs::path(root) / file;
      if (!fs::is_directory(path.parent_path()))
        throw invalid(fmt::format("{}: there is no such folder", path.parent_path().string()),
                      "run this command in the root of Tutti's sources, or use --root FOLDER");
      if (fs::exists(path)) throw invalid(fmt::format("{}: the file exists", path.string()), "use another name");
    }
    nlohmann::ordered_json written = nlohmann::ordered_json::array();
    for (const auto& [file, text] : files) {
      write_target((fs::path(root) / file).string(), filled(text, name));
      written.push_back(file);
    }
    if (json) {
      print_json({{"model", name}, {"files", written}});
    } else {
      print_out("{}: the model, found by every command after a build\n", files[0].first);
      print_out("{}: the same in PyTorch, for golden values and benchmarks\n\n", files[1].first);
      print_out("next:\n  scripts/collect.py   # adds it to the list of models\n  cmake --build --preset release\n");
      print_out("  tutti train {} --size tiny --steps 20\n", name);
      print_out("  python tests/golden/make_models.py {}   # with PyTorch: 20 steps to compare with\n", name);
      print_out("  ctest --preset release -R '/{} '        # golden, lockstep on every device, bf16 and f16\n", name);
    }
    return done;
  }
};

}  // namespace

void add_new_model(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("new-model", "Create a source file for a built-in model from a template");
  static NewModel command;
  sub->add_option("name", command.name, "Of the model: a-z, 0-9 and _")->required();
  sub->add_option("--root", command.root, "Root of Tutti's sources");
  add_json_flag(*sub, command.json);
  sub->callback([&action] { action = [] { return command(); }; });
}

}  // namespace tutti::cli
