// Renders a kernel's text: words, parameter macros, called functions of math.k, and the body.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <regex>
#include <sstream>

#include "core/base/status.h"
#include "kernels/codegen/buffers.h"
#include "kernels/codegen/precise.h"

namespace tutti::codegen {
namespace {

/// OVER(a, b) of math.k: the quotient, correctly rounded for exact numerics.
std::string over_text(const Target& t) {
  return t.exact && !t.rounded_division ? fill(t.language->divide, {{"a", "a"}, {"b", "b"}}) : "(a) / (b)";
}

/// The functions of kernels/portable/math.k that a text calls directly or indirectly, in file order. Paragraphs of the
/// file are included as a whole. `over`: the text of OVER(a, b).
std::string functions_for(const std::string& text, const std::string& over) {
  struct Part {
    std::string text;
    std::vector<std::string> names;
    bool taken = false;
  };
  static const std::vector<Part> all = [] {
    std::vector<Part> parts;
    std::string body = portable("math").body;
    static const std::regex name("\\nFN [a-z]+ ([a-z0-9_]+)\\(");
    for (size_t at = 0; at < body.size();) {
      size_t end = std::min(body.find("\n\n", at), body.size());
      Part p{"\n" + body.substr(at, end - at) + "\n", {}};
      for (std::sregex_iterator m(p.text.begin(), p.text.end(), name), last; m != last; ++m) p.names.push_back((*m)[1]);
      parts.push_back(p);
      at = end + 2;
    }
    return parts;
  }();
  auto calls = [](const std::string& in, const std::string& f) {
    for (size_t at = in.find(f + "("); at != std::string::npos; at = in.find(f + "(", at + 1))
      if (at == 0 || !(std::isalnum(static_cast<unsigned char>(in[at - 1])) || in[at - 1] == '_')) return true;
    return false;
  };
  std::vector<Part> parts = all;
  std::vector<const std::string*> open = {&text};
  while (!open.empty()) {
    const std::string& from = *open.back();
    open.pop_back();
    bool divides = from.find("OVER(") != from.npos;
    auto called = [&](const std::string& f) { return calls(from, f) || (divides && calls(over, f)); };
    for (Part& p : parts)
      if (!p.taken && std::any_of(p.names.begin(), p.names.end(), called)) {
        p.taken = true;
        open.push_back(&p.text);
      }
  }
  std::string result;
  for (const Part& p : parts)
    if (p.taken) result += p.text;
  return result;
}

/// The body with repeated lines expanded.
std::string written_out(const Kernel& k) {
  std::string body = k.body;
  for (auto& [letter, count] : k.repeats) {
    auto value = std::find_if(k.values.begin(), k.values.end(), [&, name = count](auto& v) { return v.first == name; });
    if (value == k.values.end())
      throw Error(Code::internal, fmt::format("{}: kernel {}: {} has no value", k.file, k.name, count));
    std::string mark = "{" + letter + "}", to;
    std::istringstream lines(body);
    for (std::string line; std::getline(lines, line);) {
      bool many = line.find(mark) != std::string::npos;
      for (int n = 0; n < (many ? std::stoi(value->second) : 1); ++n) {
        std::string one = line;
        for (size_t at = one.find(mark); at != std::string::npos; at = one.find(mark, at))
          one.replace(at, mark.size(), std::to_string(n));
        to += one + "\n";
      }
    }
    body = to;
  }
  return body;
}

/// Defines LOCALS, LOCAL and ITEM.
std::string item_words(const Kernel& k) {
  std::string text = fmt::format("#define LOCALS {}\n", k.local[0] * k.local[1] * k.local[2]);
  text += k.local[1] * k.local[2] == 1
              ? "#define LOCAL LID(0)\n"
              : fmt::format("#define LOCAL (LID(0) + {} * (LID(1) + {} * LID(2)))\n", k.local[0], k.local[1]);
  return text + "#define ITEM (GROUP * LOCALS + LOCAL)\n";
}

/// Macros of the parameters, their type names and the values.
std::string bound_names(const Target& t, const Kernel& k) {
  std::string text;
  for (const Param& p : k.params) {
    text += access(t, p);
    if (!p.type.empty() && p.type[0] >= 'A' && p.type[0] <= 'Z') {
      std::string define = fmt::format("#define {} {}\n", p.type, register_type(p.element));
      if (text.find(define) == std::string::npos) text += define;
    }
  }
  for (auto& [name, value] : k.values) {
    if (value.empty()) throw Error(Code::internal, fmt::format("{}: kernel {}: {} has no value", k.file, k.name, name));
    text += fmt::format("#define {} {}\n", name, value);
  }
  return text;
}

/// The numbers, as macros or as variables that are read from an additional parameter.
std::string number_words(const Target& t, Kernel& k, KernelSource& s) {
  std::string macros, variables;
  for (const Number& n : k.numbers) {
    if (!n.value) throw Error(Code::internal, fmt::format("{}: kernel {}: {} has no value", k.file, k.name, n.name));
    int64_t x = *n.value;
    bool fits = x >= INT32_MIN && x <= UINT32_MAX, large = x > INT32_MAX;
    bool shared = n.kind == Number::data || (t.shares_texts() && !(n.kind == Number::stride && x == 1));
    if (fits && shared) {
      variables += large ? fmt::format("  idx {} = IDX(U32(numbers({})));\n", n.name, s.numbers.size())
                         : fmt::format("  int {} = numbers({});\n", n.name, s.numbers.size());
      s.numbers.push_back(static_cast<uint32_t>(x));
    } else {
      macros += fmt::format("#define {} {}\n", n.name, as_literal(x));
    }
  }
  if (!s.numbers.empty()) k.params.push_back({.name = "numbers", .element = Element::i32});
  k.body = variables + k.body;
  return macros;
}

}  // namespace

std::string float_literal(const Language& language, float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  if (!std::isfinite(x) || (x != 0 && std::fabs(x) < 1.1754944e-38f) || bits == 0x80000000u)
    return fill(language.float_of_bits, {{"bits", fmt::format("0x{:08x}u", bits)}});
  std::string s = fmt::format("{:.9g}", x);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return x < 0 ? "(" + s + "f)" : s + "f";
}

KernelSource render(const Target& t, Kernel k) {
  const Language& l = *t.language;
  k.exact = k.exact || t.exact;
  if (k.write_body) k.body = k.write_body(t, k);
  KernelSource s;
  s.entry = fill(l.entry, {{"kernel", k.name}});
  s.local = k.local;
  s.exact = k.exact;
  s.denormals = t.exact;
  s.whole_subgroups = !k.words.empty();
  std::string numbers = number_words(t, k, s);
  for (const Param& p : k.params) {
    s.written.push_back(p.written);
    s.texels.push_back(p.texels);
  }
  std::string head = (l.first ? l.first(t, k) : "") + l.words.text();
  head += k.elements > 0x7fffffffu - index_slack ? l.wide_index : l.index;
  if (!l.pointers) head += buffer_declarations(t, k);
  head += item_words(k);
  std::string text = bound_names(t, k) + numbers + k.words + k.functions + l.open(t, k) + written_out(k) +
                     (l.close ? l.close(t, k) : "}\n");
  text = functions_for(text, over_text(t)) + text;
  if (text.find("OVER(") != text.npos) text = fmt::format("#define OVER(a, b) ({})\n", over_text(t)) + text;
  if (!l.kept.empty()) text = keep_apart(text, l.kept);
  if (l.comment_first) s.text = fmt::format("// {}{}{}\n", k.name, k.file.empty() ? "" : ", from ", k.file);
  s.text += head + text;
  if (l.filter) s.text = l.filter(std::move(s.text));
  return s;
}

}  // namespace tutti::codegen
