// Parses kernel texts: a header with one declaration per line, "---", and the body.
#include "kernels/codegen/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "core/base/rounding.h"
#include "core/base/status.h"
#include "kernels/codegen/expression.h"
#include "kernels/codegen/texts.h"

namespace tutti::codegen {
namespace {

const std::pair<const char*, Element> element_names[] = {
    {"f32", Element::f32},      {"i32", Element::i32}, {"u32", Element::u32},   {"u8", Element::u8},
    {"bool", Element::boolean}, {"f16", Element::f16}, {"bf16", Element::bf16}, {"raw16", Element::raw16}};

[[noreturn]] void fail(const std::string& file, int line, const std::string& what) {
  throw Error(Code::internal, fmt::format("{}:{}: {}", file, line, what), "correct the kernel text");
}

Element bound(const std::string& type, const std::map<std::string, Element>& types, const std::string& file, int line) {
  for (auto& [name, element] : element_names)
    if (type == name) return element;
  auto at = types.find(type);
  if (at == types.end()) fail(file, line, fmt::format("the type {} is not defined", type));
  return at->second;
}

const char* text_of(const std::string& name) {
  for (const Text* t = texts; t->name; ++t)
    if (name == t->name) return t->text;
  throw Error(Code::internal, fmt::format("there is no kernel source {}.k", name));
}

/// The body of a text with functions.
std::string functions_of(const std::string& name) {
  return parse(text_of(name), "kernels/portable/" + name + ".k", {}).body;
}

}  // namespace

Element element_of(DType t) {
  switch (t) {
    case DType::f32: return Element::f32;
    case DType::i32: return Element::i32;
    case DType::u32: return Element::u32;
    case DType::u8: return Element::u8;
    case DType::boolean: return Element::boolean;
    case DType::f16: return Element::f16;
    case DType::bf16: return Element::bf16;
    default: throw Error(Code::declined, fmt::format("the portable kernels do not support dtype {}", name(t)));
  }
}

Element raw_element(size_t size) { return size == 1 ? Element::u8 : size == 2 ? Element::raw16 : Element::u32; }

size_t size_of(Element e) {
  switch (e) {
    case Element::u8:
    case Element::boolean: return 1;
    case Element::f16:
    case Element::bf16:
    case Element::raw16: return 2;
    default: return 4;
  }
}

std::string decode(Element e, const std::string& bits) {
  switch (e) {
    case Element::boolean: return fmt::format("({} != 0u)", bits);
    case Element::f16: return fmt::format("half_to_({})", bits);
    case Element::bf16: return fmt::format("bhalf_to_({})", bits);
    default: return bits;
  }
}

std::string encode(Element e, const std::string& value) {
  switch (e) {
    case Element::boolean: return fmt::format("(({}) ? 1u : 0u)", value);
    case Element::f16: return fmt::format("half_of_({})", value);
    case Element::bf16: return fmt::format("bhalf_of_({})", value);
    default: return fmt::format("({})", value);
  }
}

const char* register_type(Element e) {
  switch (e) {
    case Element::f32:
    case Element::f16:
    case Element::bf16: return "float";
    case Element::i32: return "int";
    case Element::boolean: return "bool";
    default: return "uint";
  }
}

void Kernel::set(const std::string& name, const std::string& text) {
  std::erase_if(numbers, [&](const Number& n) { return n.name == name; });
  for (auto& [known, value] : values)
    if (known.substr(0, known.find('(')) == name.substr(0, name.find('('))) {
      value = text;
      return;
    }
  values.emplace_back(name, text);
}

void Kernel::set(const std::string& name, int64_t x) {
  for (Number& n : numbers)
    if (n.name == name) {
      n.value = x;
      return;
    }
  set(name, as_literal(x));
}

std::string Kernel::number(int64_t x) {
  // This sum never decreases, because set() moves entries between the lists.
  numbers.push_back({fmt::format("N{}_", values.size() + numbers.size()), x});
  return numbers.back().name;
}

Kernel parse(const std::string& text, const std::string& file, const std::map<std::string, Element>& types) {
  Kernel k;
  k.file = file;
  std::istringstream lines(text);
  std::string line;
  int number = 0;
  bool body = false, functions = false;
  while (!body && std::getline(lines, line)) {
    ++number;
    if (size_t comment = line.find("//"); comment != std::string::npos) line.resize(comment);
    std::istringstream words(line);
    std::string word, rest;
    if (!(words >> word)) continue;
    if (word == "---") {
      body = true;
    } else if (word == "kernel" || word == "functions") {
      functions = word == "functions";
      if (!(words >> k.name)) fail(file, number, word + ": a name is missing");
    } else if (word == "in" || word == "out") {
      Param p;
      if (!(words >> p.name >> p.type)) fail(file, number, word + " NAME TYPE expected");
      p.element = bound(p.type, types, file, number);
      p.written = word == "out";
      k.params.push_back(p);
    } else if (word == "shared") {
      std::getline(words >> std::ws, rest);
      if (rest.empty()) fail(file, number, "shared TYPE NAME[SIZE] expected");
      k.shared.push_back(rest);
    } else if (word == "local") {
      if (!(words >> k.local[0])) fail(file, number, "local SIZE… expected");
      for (size_t d = 1; d < 3 && words >> k.local[d]; ++d) {
      }
    } else if (word == "repeat") {
      if (!(words >> word >> rest)) fail(file, number, "repeat LETTER VALUE expected");
      k.repeats.emplace_back(word, rest);
    } else if (word == "value") {  // names that the caller must set
      while (words >> rest) k.values.emplace_back(rest, "");
    } else if (word == "number" || word == "stride" || word == "data") {
      Number::Kind kind = word == "data" ? Number::data : word == "stride" ? Number::stride : Number::number;
      while (words >> rest) k.numbers.push_back({rest, {}, kind});
    } else if (word == "rounds") {
      std::getline(words >> std::ws, k.rounds);
      if (k.rounds.empty()) fail(file, number, "rounds EXPRESSION expected");
    } else if (word == "uses") {
      while (words >> rest) {
        k.functions += functions_of(rest);
      }
    } else {
      fail(file, number,
           fmt::format("unknown word '{}', expected one of kernel, functions, in, out, shared, local, value, number, "
                       "stride, data, repeat, rounds, uses, ---",
                       word));
    }
    if (words.clear(), words >> word) fail(file, number, fmt::format("unexpected '{}' at the end of the line", word));
  }
  if (!body) fail(file, number, "the line '---' before the body is missing");
  if (k.name.empty()) fail(file, 1, "the line 'kernel NAME' is missing");
  k.body_line = number + 1;
  k.body.assign(std::istreambuf_iterator<char>(lines), {});
  std::string open;  // open brackets
  int at = k.body_line;
  for (char c : k.body) {
    if (c == '\n') ++at;
    if (c == '(' || c == '{' || c == '[') open += c == '(' ? ')' : c == '{' ? '}' : ']';
    if (c != ')' && c != '}' && c != ']') continue;
    if (open.empty() || open.back() != c) fail(file, at, fmt::format("unmatched '{}'", c));
    open.pop_back();
  }
  if (!open.empty()) fail(file, at, fmt::format("'{}' is missing", open.back()));
  bool loops = k.body.find("for (") != std::string::npos || k.body.find("while (") != std::string::npos;
  if (!functions && loops == k.rounds.empty())  // callers declare the loops of functions
    fail(file, k.body_line,
         loops ? "the body has a loop, but the line 'rounds' is missing"
               : "the line 'rounds' is given, but the body has no loop");
  return k;
}

bool Kernel::takes(const std::string& name) const {
  return std::any_of(values.begin(), values.end(),
                     [&](auto& v) { return v.first.substr(0, v.first.find('(')) == name; }) ||
         std::any_of(numbers.begin(), numbers.end(), [&](const Number& n) { return n.name == name; });
}

bool Kernel::set_epilogue(bool bias, bool relu, const char* arguments, const std::string& column) {
  if (!bias) std::erase_if(params, [](const Param& p) { return p.name == "bias"; });
  std::string value = bias ? fmt::format("(v) + bias({})", column) : "(v)";
  set(fmt::format("EPILOGUE({})", arguments), fmt::format(fmt::runtime(relu ? "max_({}, 0.0f)" : "({})"), value));
  return bias;
}

void Kernel::drop(const std::string& parameter, std::initializer_list<std::string_view> words) {
  std::erase_if(params, [&](const Param& p) { return p.name == parameter; });
  for (std::string_view word : words) {
    std::erase_if(values, [&](const auto& v) { return v.first.starts_with(word); });
    for (size_t at; (at = body.find(word)) != std::string::npos;) {
      const size_t line = body.rfind('\n', at) + 1;
      body.erase(line, body.find('\n', at) + 1 - line);
    }
  }
}

void Kernel::set_activation(const Target& target, std::span<const TuttiInstr> code, Element type, bool keep,
                            std::span<const std::pair<Element, std::string>> others) {
  std::string parameters = "float x", arguments;
  std::vector<std::vector<std::string>> inputs = {{"x"}};
  for (const auto& [element, text] : others) {
    inputs.push_back({fmt::format("x{}", inputs.size())});
    parameters += fmt::format(", {} {}", register_type(element), inputs.back()[0]);
    arguments += ", " + text;
  }
  for (auto& [name, value] : values) {
    if (!name.starts_with("EPILOGUE(")) continue;
    const std::string sum = decode(type, encode(type, value));
    value = fmt::format("{}({}{})", activation_name, sum, arguments);
    if (keep) set("KEPT(" + name.substr(name.find('(') + 1), sum);
    break;
  }
  Statements s = statements(target, code, inputs, 1, false);
  functions +=
      fmt::format("FN float {}({}) {{\n{}  return {};\n}}\n", activation_name, parameters, s.text, s.results[0][0]);
}

std::string words_for_tensor_cores(const Target& t, DType operands) {
  return fill(t.language->tensor_cores, {{"type", operands == DType::bf16 ? "bf16" : "f16"}});
}

void Kernel::read_as_texels(const Target& t, const std::string& param, int64_t count) {
  if (t.language->texels.empty() || static_cast<uint64_t>(ceil_div(count, 4)) > t.max_texels) return;
  for (Param& p : params)
    if (p.name == param) p.texels = p.element == Element::f32 && !p.written;
}

Kernel portable(const std::string& name, const std::map<std::string, Element>& types) {
  return parse(text_of(name), "kernels/portable/" + name + ".k", types);
}

std::vector<std::string> portable_names() {
  std::vector<std::string> names;
  for (const Text* t = texts; t->name; ++t) names.emplace_back(t->name);
  return names;
}

Launch dispatch_items(const Target& target, Kernel kernel, int64_t items, std::vector<int> buffers) {
  if (kernel.local[1] * kernel.local[2] == 1) kernel.local[0] = std::min(kernel.local[0], target.max_local);
  uint32_t local = kernel.local[0] * kernel.local[1] * kernel.local[2];
  return dispatch(target, std::move(kernel), static_cast<uint64_t>(ceil_div(items, local)), std::move(buffers));
}

namespace {

/// Checks a kernel whose index range is final.
void check_limits(const Target& t, const Kernel& k) {
  auto decline = [&](const std::string& why) {
    throw Error(Code::declined, fmt::format("kernel {}: {}", k.name, why));
  };
  if (k.elements > t.language->most_elements - index_slack)
    decline(fmt::format("{} elements are more than {} can index", k.elements, t.language->name));
  if (uint32_t items = k.local[0] * k.local[1] * k.local[2]; items > t.max_local)
    decline(fmt::format("{} work-items in a group; this device supports at most {}", items, t.max_local));
  if (double rounds = rounds_of(k); rounds > t.max_rounds)
    decline(
        fmt::format("{:.0f} loop iterations in a work-item; this device supports at most {}", rounds, t.max_rounds));
}

}  // namespace

Launch dispatch(const Target& target, Kernel kernel, uint64_t groups, std::vector<int> buffers) {
  constexpr uint64_t most = 65535;
  Launch d;
  uint64_t x = groups, y = 1, z = 1;
  if (x > most) {
    y = ceil_div(groups, most);
    x = ceil_div(groups, y);
  }
  if (y > most) {
    z = ceil_div(y, most);
    y = ceil_div(y, z);
  }
  if (z > most) throw Error(Code::declined, fmt::format("{} groups of work-items are too many", groups));
  d.groups = {static_cast<uint32_t>(x), static_cast<uint32_t>(y), static_cast<uint32_t>(z)};
  uint64_t items = x * y * z * kernel.local[0] * kernel.local[1] * kernel.local[2];
  kernel.elements = std::max(kernel.elements, items);  // ITEM must fit into IDX
  std::string group = "IDX(GRP(0))";
  auto number = [&](uint64_t n) { return kernel.number(static_cast<int64_t>(n)); };
  if (z > 1)
    group = fmt::format("(IDX(GRP(0)) + {} * (IDX(GRP(1)) + {} * IDX(GRP(2))))", number(x), number(y));
  else if (y > 1)
    group = fmt::format("(IDX(GRP(0)) + {} * IDX(GRP(1)))", number(x));
  kernel.values.emplace_back("GROUP", group);
  check_limits(target, kernel);
  d.buffers = std::move(buffers);
  d.name = kernel.name;
  if (d.buffers.size() != kernel.params.size())
    throw Error(Code::internal, fmt::format("kernel {}: {} buffers given for {} parameters", kernel.name,
                                            d.buffers.size(), kernel.params.size()));
  d.kernel = std::make_shared<const Kernel>(std::move(kernel));
  return d;
}

}  // namespace tutti::codegen
