// The text of --help and --help-all.
#include "cli/help/help.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "core/base/text.h"

namespace tutti::cli {
namespace {

constexpr size_t columns = 100, description_column = 30;

/// Subcommand and option: options may be removed, and their addresses used again.
using Key = std::pair<const CLI::App*, std::string>;

std::set<Key>& rare() {
  static std::set<Key> all;
  return all;
}

std::map<Key, std::string>& examples() {
  static std::map<Key, std::string> all;
  return all;
}

Key key_of(const CLI::App& app, const CLI::Option& o) {
  return {&app, o.get_lnames().empty() ? "" : o.get_lnames()[0]};
}

/// "-h, --help", "--epochs 5", "MODEL".
std::string head(const CLI::App& app, const CLI::Option& o) {
  if (o.get_positional()) return o.get_name(true);
  std::string text;
  for (const std::string& name : o.get_snames()) text += fmt::format("-{}, ", name);
  for (const std::string& name : o.get_lnames()) text += fmt::format("--{}, ", name);
  text.resize(text.size() - 2);
  if (o.get_items_expected_max() == 0) return text;
  auto example = examples().find(key_of(app, o));
  return text + " " + (example != examples().end() ? example->second : o.get_type_name());
}

std::string description(const CLI::Option& o) {
  const std::string& value = o.get_default_str();
  bool shown = !value.empty() && value != "[]" && o.get_items_expected_max() > 0;
  return o.get_description() + (shown ? fmt::format(" [{}]", value) : "");
}

std::string entry(const std::string& left, const std::string& text) {
  std::string line = "  " + left;
  if (line.size() + 2 > description_column) line += "\n";
  size_t last = line.rfind('\n');
  size_t used = last == std::string::npos ? line.size() : line.size() - last - 1;
  return line + std::string(description_column - used, ' ') + wrapped(text, description_column) + "\n";
}

class Formatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode mode) const override {
    const bool all = mode == CLI::AppFormatMode::All;
    std::string text = wrapped(app->get_description(), 0) + "\n\n" + usage(*app) + "\n";
    size_t left_out = 0;
    std::vector<std::string> groups;
    for (const CLI::Option* o : app->get_options())
      if (std::ranges::find(groups, o->get_group()) == groups.end()) groups.push_back(o->get_group());
    for (const std::string& group : groups) {
      if (group.empty()) continue;
      std::string entries;
      for (const CLI::Option* o : app->get_options([&](const CLI::Option* o) { return o->get_group() == group; }))
        if (all || !rare().contains(key_of(*app, *o)))
          entries += entry(head(*app, *o), description(*o));
        else
          ++left_out;
      if (!entries.empty()) text += fmt::format("\n{}\n{}", group, entries);
    }
    text += commands(*app);
    if (left_out > 0) text += fmt::format("\n{} more options: tutti {} --help-all\n", left_out, app->get_name());
    if (!app->get_footer().empty()) text += "\n";
    for (const std::string& line : split(app->get_footer(), '\n')) text += wrapped(line, 0) + "\n";
    return text;
  }

 private:
  static std::string usage(const CLI::App& app) {
    std::string text = app.get_parent() ? "Usage: tutti " + app.get_name() : "Usage: tutti COMMAND";
    for (const CLI::Option* o : app.get_options([](const CLI::Option* o) { return o->get_positional(); }))
      text += o->get_required() ? " " + o->get_name(true) : " [" + o->get_name(true) + "]";
    return text + " [OPTIONS]";
  }

  static std::string commands(const CLI::App& app) {
    std::string text;
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); }))
      text += entry(sub->get_name(), sub->get_description());
    return text.empty() ? "" : "\nCommands\n" + text;
  }
};

/// Escapes text for roff.
std::string roff(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\\' || c == '-') out += '\\';
    if (c == '.' && (out.empty() || out.back() == '\n')) out += "\\&";
    out += c;
  }
  return out;
}

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<Formatter>(); }

void rarely_used(const CLI::App& sub, const std::string& option) { rare().emplace(&sub, option); }

void with_example(const CLI::App& sub, const std::string& option, const std::string& value) {
  examples()[{&sub, option}] = value;
}

std::string wrapped(const std::string& text, size_t indent) {
  std::string out;
  size_t used = indent;
  for (const std::string& word : split(text, ' ')) {
    if (!out.empty() && used + 1 + word.size() > columns) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (!out.empty()) {
      out += ' ';
      ++used;
    }
    out += word;
    used += word.size();
  }
  return out;
}

std::string man_page(const CLI::App& sub) {
  std::string name = sub.get_parent() ? "tutti-" + sub.get_name() : "tutti";
  std::string text = fmt::format(".TH {} 1 \"\" \"tutti " TUTTI_VERSION "\"\n.SH NAME\n{} \\- {}\n.SH OPTIONS\n",
                                 roff(name), roff(name), roff(sub.get_description()));
  for (const CLI::Option* o : sub.get_options())
    if (!o->get_group().empty()) text += fmt::format(".TP\n.B {}\n{}\n", roff(head(sub, *o)), roff(description(*o)));
  for (const CLI::App* command : sub.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); }))
    text += fmt::format(".TP\n.BR tutti\\-{} (1)\n{}\n", roff(command->get_name()), roff(command->get_description()));
  if (!sub.get_footer().empty()) text += fmt::format(".SH EXAMPLE\n{}\n", roff(sub.get_footer()));
  return text;
}

}  // namespace tutti::cli
