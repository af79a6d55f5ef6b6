#include "kernels/codegen/joined.h"

#include <fmt/format.h>

#include <cctype>
#include <set>
#include <string_view>

namespace tutti::codegen {
namespace {

bool of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// The identifier that ends before position `end` of `line`, or "".
std::string word_before(std::string_view line, size_t end) {
  while (end > 0 && !of_word(line[end - 1])) --end;
  size_t start = end;
  while (start > 0 && of_word(line[start - 1])) --start;
  return std::string(line.substr(start, end - start));
}

/// Names that a text defines at file scope.
struct Names {
  std::set<std::string> macros, others;
};

Names names_of(const KernelSource& source) {
  const std::string& text = source.text;
  Names names;
  names.others.insert(source.entry);
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line(text.data() + at, end - at);
    constexpr std::string_view define = "#define ";
    if (line.starts_with(define)) {
      size_t stop = define.size();
      while (stop < line.size() && of_word(line[stop])) ++stop;
      names.macros.insert(std::string(line.substr(define.size(), stop - define.size())));
    } else if (line.starts_with("FN ") && line.find('(') != line.npos) {
      names.others.insert(word_before(line, line.find('(')));
    } else if (line.starts_with("typedef ") && line.ends_with(';')) {
      names.others.insert(word_before(line, line.size()));
    }
    at = end + 1;
  }
  return names;
}

}  // namespace

std::string joined_entry(const KernelSource& source, size_t k) { return fmt::format("{}_{}", source.entry, k); }

std::string joined(std::span<const KernelSource> sources) {
  std::string all;
  for (size_t k = 0; k < sources.size(); ++k) {
    const KernelSource& s = sources[k];
    const Names names = names_of(s);
    for (const std::string& name : names.others) all += fmt::format("#define {} {}_{}\n", name, name, k);
    all += s.text;
    if (!s.text.ends_with('\n')) all += '\n';
    for (const auto& list : {names.macros, names.others})
      for (const std::string& name : list) all += fmt::format("#undef {}\n", name);
  }
  return all;
}

std::string with_own_names(const KernelSource& source, size_t k) {
  const Names names = names_of(source);
  std::string text = with_names(
      source.text, [&](const std::string& name) { return names.others.contains(name) ? own_name(name, k) : name; });
  if (!text.ends_with('\n')) text += '\n';
  for (const std::string& name : names.macros) text += fmt::format("#undef {}\n", name);
  return text;
}

std::string own_name(const std::string& name, size_t k) { return fmt::format("{}_p{}", name, k); }

std::string with_names(const std::string& text, const std::function<std::string(const std::string&)>& renamed) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && of_word(text[end])) ++end;
    if (end == at) {
      result += text[at++];
    } else {
      const std::string name = text.substr(at, end - at);
      result += at > 0 && text[at - 1] == '.' ? name : renamed(name);  // v.x is a member
      at = end;
    }
  }
  return result;
}

}  // namespace tutti::codegen
