#include "nn/kind.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/status.h"
#include "core/base/text.h"

namespace tutti::nn {

const LayerKind& find_layer_kind(const std::string& name) {
  std::vector<std::string> names;
  for (const LayerKind* k : all_layer_kinds()) {
    if (k->name == name) return *k;
    names.push_back(k->name);
  }
  throw invalid(fmt::format("unknown layer '{}'", name), did_you_mean(name, names));
}

std::string name_of(Argument::Type type) {
  switch (type) {
    case Argument::whole: return "integer";
    case Argument::real: return "number";
    case Argument::flag: return "true or false";
    case Argument::text: return "string";
    case Argument::sizes: return "list of integers";
    case Argument::layers: return "list of layers";
    case Argument::branches: return "list of branches";
  }
  return "";
}

std::string default_of(const Argument& a) {
  if (a.axis) return "inferred";
  if (a.data == Argument::tokens) return "the number of tokens in the data";
  if (a.data == Argument::outputs) return "in the last layer: the number of outputs that the data needs";
  if (!a.otherwise) return "";
  struct Text {
    std::string operator()(int64_t x) const { return fmt::format("{}", x); }
    std::string operator()(double x) const { return fmt::format("{:.6g}", x); }
    std::string operator()(bool x) const { return x ? "true" : "false"; }
    std::string operator()(const std::string& x) const { return fmt::format("\"{}\"", x); }
    std::string operator()(const Shape& x) const { return to_string(x); }
    std::string operator()(const NamedLayers&) const { return "[]"; }
  };
  return std::visit(Text{}, *a.otherwise);
}

std::string layers_markdown() {
  std::string text = "| layer | arguments | does |\n| --- | --- | --- |\n";
  for (const LayerKind* k : all_layer_kinds()) {
    std::vector<std::string> arguments;
    for (const Argument& a : k->arguments) {
      std::string value = default_of(a), notes = value.empty() && a.type != Argument::whole ? name_of(a.type) : "";
      if (!a.choices.empty()) {
        std::vector<std::string> quoted;
        for (const std::string& c : a.choices) quoted.push_back(fmt::format("\"{}\"", c));
        notes = alternatives(quoted);
      }
      if (!a.doc.empty()) notes += (notes.empty() ? "" : "; ") + a.doc;
      arguments.push_back(fmt::format("`{}`{}{}", a.name, value.empty() ? "" : fmt::format(" = {}", value),
                                      notes.empty() ? "" : fmt::format(" ({})", notes)));
    }
    text += fmt::format("| `{}` | {} | {} |\n", k->name, fmt::join(arguments, ", "), k->doc);
  }
  return text;
}

}  // namespace tutti::nn
