#include "cli/run_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/number.h"
#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "data/file.h"

namespace tutti::cli {
namespace {

constexpr const char* json_remedy = "write {\"key\": value, …}, or TOML: key = value";

Error twice(const std::string& where, const std::string& key) {
  return invalid(fmt::format("{}: the key '{}' occurs twice", where, key), "remove one of them");
}

/// Whether the text is a number in TOML: "5", "-0.1", "1e-3".
bool is_number(const std::string& text) {
  size_t first = text.starts_with('-') ? 1 : 0;
  return text.size() > first && is_digit(text[first]) && is_digit(text.back()) &&
         text.find_first_not_of("0123456789+-.eE") == std::string::npos && real(text).empty();
}

bool is_bare(const std::string& text) { return text == "true" || text == "false" || is_number(text); }

/// Parser of one line of a run file.
class Line {
 public:
  Line(std::string_view text, std::string where) : text_(text), where_(std::move(where)) { skip(); }
  bool empty() const { return at_ == text_.size() || text_[at_] == '#'; }

  Setting setting() {
    constexpr const char* letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    if (text_[at_] == '[')
      fail("sections are not supported in a run file", "remove it: a run file contains only key = value lines");
    size_t end = std::min(text_.find_first_not_of(letters, at_), text_.size());
    std::string key(text_.substr(at_, end - at_));
    at_ = end;
    skip();
    if (key.empty() || !eat('=')) fail("not `key = value`", "such as: epochs = 3");
    std::vector<std::string> items;
    std::string value = eat('[') ? list(items) : one();
    if (!empty()) fail(fmt::format("unexpected text after the value of '{}'", key), "one key and one value per line");
    return {key, value, where_, items};
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
  }
  bool eat(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    skip();
    return true;
  }
  [[noreturn]] void fail(const std::string& what, const std::string& remedy) const {
    throw invalid(fmt::format("{}: {}", where_, what), remedy);
  }
  std::string list(std::vector<std::string>& items) {
    while (!eat(']')) {
      if (!items.empty() && !eat(','))
        fail("the array is not closed", "close the array on the same line: [784, 512, 10]");
      items.push_back(one());
    }
    return fmt::format("{}", fmt::join(items, ","));
  }
  std::string one() {
    if (empty()) fail("the value is missing", "such as: epochs = 3");
    std::string value = text_[at_] == '"' || text_[at_] == '\'' ? quoted(text_[at_]) : bare();
    skip();
    return value;
  }
  std::string bare() {
    size_t end = std::min(text_.find_first_of(" \t\r#,]", at_), text_.size());
    std::string value(text_.substr(at_, end - at_));
    if (!is_bare(value))
      fail(fmt::format("{} is not a number, true or false", value),
           fmt::format("put strings in quotes: \"{}\"", value));
    at_ = end;
    return value;
  }
  std::string quoted(char quote) {
    std::string value;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      char c = text_[at_];
      if (quote == '"' && c == '\\') {
        constexpr std::string_view names = "\"\\nt", meant = "\"\\\n\t";
        size_t which = ++at_ < text_.size() ? names.find(text_[at_]) : std::string::npos;
        if (which == std::string::npos)
          fail("invalid escape sequence after a backslash", R"(write \\ for one, or quote with ')");
        c = meant[which];
      }
      value += c;
    }
    if (at_ == text_.size()) fail("the string has no closing quote", "one key and one value per line");
    ++at_;
    return value;
  }

  std::string_view text_;
  std::string where_;
  size_t at_ = 0;
};

std::string value_of(const nlohmann::json& j, const std::string& where, const std::string& key) {
  if (j.is_string()) return j;
  if (j.is_boolean() || j.is_number()) return j.dump();
  if (!j.is_array())
    throw invalid(fmt::format("{}: the value of '{}' must be a number, a string, true, false or an array", where, key));
  std::string all;
  for (const auto& x : j) {
    if (x.is_structured() || x.is_null())
      throw invalid(fmt::format("{}: the array '{}' must contain only numbers and strings", where, key));
    all += (all.empty() ? "" : ",") + value_of(x, where, key);
  }
  return all;
}

/// The keys of a JSON object in order, with their lines.
std::vector<std::pair<std::string, size_t>> keys_of(const std::string& text) {
  std::vector<std::pair<std::string, size_t>> all;
  size_t depth = 0, line = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\n') ++line;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') continue;
    size_t first = i++;
    while (text[i] != '"') i += text[i] == '\\' ? 2 : 1;
    if (depth == 1 && text[std::min(text.find_first_not_of(" \t\r\n", i + 1), text.size() - 1)] == ':')
      all.emplace_back(nlohmann::json::parse(text.substr(first, i + 1 - first)), line);
  }
  return all;
}

std::vector<Setting> from_json(const std::string& path, const std::string& text) try {
  std::vector<Setting> all;
  std::set<std::string> seen;
  // The parser would end at a zero byte and ignore the rest.
  if (size_t zero = text.find('\0'); zero != std::string::npos)
    throw invalid(fmt::format("{}: byte {} is no JSON", path, zero + 1), json_remedy);
  const auto document = nlohmann::json::parse(text);
  for (const auto& [key, line] : keys_of(text)) {
    std::string where = fmt::format("{}:{}", path, line);
    if (!seen.insert(key).second) throw twice(where, key);
    all.push_back({key, value_of(document.at(key), where, key), where});
    if (document.at(key).is_array())
      for (const auto& item : document.at(key)) all.back().items.push_back(value_of(item, where, key));
  }
  return all;
} catch (const nlohmann::json::parse_error& e) {
  throw invalid(fmt::format("{}: byte {} is no JSON", path, e.byte), json_remedy);
} catch (const nlohmann::json::out_of_range&) {
  throw invalid(fmt::format("{}: a number is too large", path), "numbers are those of a double: up to 1.8e308");
}

/// A value in TOML syntax.
std::string toml_value(const std::string& value) {
  if (is_bare(value)) return value;
  std::string text = "\"";
  for (char c : value) text += c == '"' || c == '\\' ? fmt::format("\\{}", c) : c == '\n' ? "\\n" : std::string(1, c);
  return text + "\"";
}

/// Entries in checkpoints that are not options.
bool left_out(const std::string& key, const std::string& value) {
  return value.empty() || key == "vocabulary" || key == "description";
}

}  // namespace

std::vector<Setting> read_run_file(const std::string& path) {
  std::string text = data::read_file(path, "give a run file: lines of `key = value`, or a JSON object");
  if (size_t first = text.find_first_not_of(" \t\r\n"); first != std::string::npos && text[first] == '{')
    return from_json(path, text);
  if (text.starts_with('[') && nlohmann::json::accept(text))
    throw invalid(fmt::format("{}: a JSON array, expected an object", path), json_remedy);
  std::vector<Setting> all;
  std::set<std::string> seen;
  size_t number = 0;
  for (const std::string& line : fields(text, '\n')) {
    Line rest(line, fmt::format("{}:{}", path, ++number));
    if (rest.empty()) continue;
    all.push_back(rest.setting());
    if (!seen.insert(all.back().key).second) throw twice(all.back().where, all.back().key);
  }
  return all;
}

void RunFile::add_to(CLI::App& sub) {
  sub_ = &sub;
  sub.add_option("--config", config_,
                 "Take options from this run file, TOML (epochs = 3) or JSON, unless they are given here; "
                 "`tutti inspect CHECKPOINT --run` writes one")
      ->group("Files");
  sub.add_option("--set", sets_, "Set an option as KEY=VALUE, which overrides the run file; can be repeated")
      ->group("Files")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

/// Returns whether it was applied; options on the command line take precedence.
bool RunFile::set(const Setting& s) {
  static const std::set<std::string> own = {"config", "set", "help", "json"};
  std::vector<std::string> names;
  CLI::Option* option = nullptr;
  for (CLI::Option* o : sub_->get_options()) {
    std::string name = o->get_lnames().empty() ? o->get_name() : o->get_lnames()[0];
    if (own.contains(name)) continue;
    names.push_back(name);
    if (name == s.key) option = o;
  }
  if (!option) throw invalid(fmt::format("{}: unknown option '{}'", s.where, s.key), did_you_mean(s.key, names));
  if (s.value.empty()) throw invalid(fmt::format("{}: '{}' has an empty value", s.where, s.key), "remove it");
  if (!option->empty()) return false;
  if (option->get_items_expected_max() == 0 && s.value != "true" && s.value != "false")
    throw invalid(fmt::format("{}: '{}' must be true or false, got '{}'", s.where, s.key, s.value), "true or false");
  try {
    option->add_result(s.value);
    option->run_callback();
  } catch (const CLI::Error& e) {
    if (option->get_items_expected_min() == 0)  // CLI11's message would be about the command line
      throw invalid(fmt::format("{}: '{}' cannot be '{}'", s.where, s.key, s.value),
                    fmt::format("such as: {} = {}", s.key, option->get_default_str()));
    throw invalid(fmt::format("{}: {}", s.where, e.what()), "`tutti train --help` shows the allowed values");
  }
  return true;
}

void RunFile::apply() {
  std::map<std::string, Setting> sets;  // the last value of a key is used
  for (const std::string& text : sets_) {
    size_t at = text.find('=');
    if (at == std::string::npos || at == 0)
      throw invalid_option("set", text, "no name and value", "such as --set lr=0.01");
    Setting s{text.substr(0, at), text.substr(at + 1), "--set " + text};
    if (s.value.starts_with('[')) s = Line(text, s.where).setting();  // parsed like a line of a file
    const CLI::Option* o = sub_->get_option_no_throw(s.key == "model" ? s.key : "--" + s.key);
    if (o && !o->empty())
      throw invalid(fmt::format("{}: this cannot be combined with --{}", s.where, s.key), "omit one of the two");
    sets.insert_or_assign(s.key, s);
  }
  bool epochs = !sub_->get_option("--epochs")->empty() || sets.contains("epochs");
  for (const auto& [key, s] : sets) set(s);
  for (const Setting& s : config_.empty() ? std::vector<Setting>{} : read_run_file(config_))
    if ((s.key != "steps" || !epochs) && set(s)) taken_.push_back(s);  // epochs override the file's steps
}

void RunFile::rethrow(const Error& e) const {
  const auto* wrong = dynamic_cast<const OptionError*>(&e);
  auto s = wrong ? std::ranges::find(taken_, wrong->option, &Setting::key) : taken_.end();
  if (s == taken_.end()) throw;
  throw OptionError(Error(e.code, fmt::format("{} ({} in {})", e.what(), s->key, s->where), e.remedy), wrong->option);
}

std::string run_file_text(const std::map<std::string, std::string>& run, bool json) {
  if (json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::object();
    for (const auto& [key, value] : run)
      if (!left_out(key, value)) all[key] = value;
    return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  }
  std::string text;
  if (run.contains("description")) text += "# the model is a file's: it has to be there\n";
  for (const auto& [key, value] : run)
    if (!left_out(key, value)) text += fmt::format("{} = {}\n", key, toml_value(value));
  return text;
}

}  // namespace tutti::cli
