#include "kernels/codegen/language.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/base/status.h"

namespace tutti::codegen {
namespace {

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// The name that a line defines, or "".
std::string_view name_of(std::string_view line) {
  constexpr std::string_view define = "#define ";
  if (line.starts_with(define)) {
    line.remove_prefix(define.size());
    return line.substr(0, static_cast<size_t>(std::find_if_not(line.begin(), line.end(), in_name) - line.begin()));
  }
  size_t end = line.find('(');
  if (end == line.npos || line.starts_with('#') || line.starts_with(' ') || line.find('{') == line.npos) return {};
  size_t begin = end;
  while (begin > 0 && in_name(line[begin - 1])) --begin;
  return line.substr(begin, end - begin);
}

/// Whether a line continues the previous definition.
bool continues(std::string_view line) { return line.starts_with(' ') || line.starts_with('}'); }

}  // namespace

Words::Words(std::string_view text) {
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    std::string_view line = text.substr(0, end);
    if (continues(line) && !definitions_.empty())
      definitions_.back().second += line;
    else
      definitions_.emplace_back(name_of(line), line);
    text.remove_prefix(end);
  }
}

void Words::set(std::string_view name, std::string definition) {
  auto named = [&](const auto& d) { return d.first == name; };
  auto at = std::find_if(definitions_.begin(), definitions_.end(), named);
  if (name.empty() || at == definitions_.end())
    throw Error(Code::invalid, fmt::format("the language does not define '{}'", name),
                "use a name listed in kernels/codegen/kernel.h");
  at->second = std::move(definition);
  definitions_.erase(std::remove_if(at + 1, definitions_.end(), named), definitions_.end());
}

std::string Words::text() const {
  std::string all;
  for (const auto& [name, text] : definitions_) all += text;
  return all;
}

std::string fill(const std::string& form, std::initializer_list<std::pair<const char*, std::string>> fields) {
  fmt::dynamic_format_arg_store<fmt::format_context> values;
  for (const auto& [name, value] : fields) values.push_back(fmt::arg(name, value));
  try {
    return fmt::vformat(form, values);
  } catch (const fmt::format_error& e) {
    std::string known;
    for (const auto& [name, value] : fields) known += fmt::format("{}{{{}}}", known.empty() ? "" : ", ", name);
    throw Error(Code::invalid, fmt::format("the format string '{}' of a language is invalid: {}", form, e.what()),
                fmt::format("its fields are {}; write literal braces twice", known));
  }
}

void check_language(const Language& l) {
  auto lacks = [&](bool missing, const char* field) {
    if (missing)
      throw Error(Code::invalid, fmt::format("the language '{}' has no {}", l.name, field),
                  "start from a copy of an existing language; kernels/codegen/language.h describes each field");
  };
  lacks(l.name.empty(), "name");
  lacks(l.extension.empty(), "extension");
  lacks(l.words.text().empty(), "words");
  lacks(l.index.empty() || l.wide_index.empty(), "index or wide_index");
  lacks(l.float_of_bits.empty(), "float_of_bits");
  lacks(!l.open, "open");
  lacks(!l.pointers && l.buffer.empty(), "buffer, though it has no pointers");
  lacks(!l.views.empty() && l.views.size() != 3, "three types in views: float4, int4, uint4");
}

}  // namespace tutti::codegen
