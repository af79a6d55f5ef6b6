// Modules by their names in PyTorch, with PyTorch's argument names, as used in model files. Each is a record of
// nn/kinds.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/export.h"
#include "nn/modules.h"

namespace tutti::nn {

/// An integer, a number, a flag, a text, a list of integers, or named modules.
using ArgumentValue = std::variant<int64_t, double, bool, std::string, Shape, NamedLayers>;

/// An argument of a module.
struct TUTTI_API Argument {
  enum Type { whole, real, flag, text, sizes, layers, branches };
  std::string name;
  Type type = whole;
  std::optional<ArgumentValue> otherwise = {};  ///< the default; none: the argument is required
  std::string doc = {};
  int64_t least = 1;                      ///< of integers
  double most = 0;                        ///< of numbers, which lie in [0, most); 0: no limit
  std::vector<std::string> choices = {};  ///< allowed values of a text
  /// Optional; if given, it must equal the size of that axis of the input.
  std::optional<int64_t> axis = {};
  /// Optional; defaults to the number of token values in the data, or, in the last module, the number of outputs that
  /// the data requires.
  enum Source { nowhere, tokens, outputs } data = nowhere;
};

/// Arguments by name, checked; complete except for those with an `axis`.
class TUTTI_API Arguments {
 public:
  explicit Arguments(std::map<std::string, ArgumentValue> values) : values_(std::move(values)) {}
  int64_t whole(const std::string& name) const { return std::get<int64_t>(values_.at(name)); }
  double real(const std::string& name) const { return std::get<double>(values_.at(name)); }
  bool flag(const std::string& name) const { return std::get<bool>(values_.at(name)); }
  const std::string& text(const std::string& name) const { return std::get<std::string>(values_.at(name)); }
  const Shape& sizes(const std::string& name) const { return std::get<Shape>(values_.at(name)); }
  const NamedLayers& layers(const std::string& name) const { return std::get<NamedLayers>(values_.at(name)); }

 private:
  std::map<std::string, ArgumentValue> values_;
};

struct TUTTI_API LayerKind {
  std::string name;  ///< PyTorch's name, capitalized; else one of Tutti's own
  std::string doc;
  std::vector<Argument> arguments;
  Layer (*make)(const Arguments&);  ///< may throw Error(invalid)
  bool reads_tokens = false;        ///< takes i32 indices less than its "num_embeddings"
};

/// In the order of the files of nn/kinds.
TUTTI_API std::span<const LayerKind* const> all_layer_kinds();
/// Throws Error(invalid) naming the nearest name, or listing all.
TUTTI_API const LayerKind& find_layer_kind(const std::string& name);
/// "integer", "number", …: what a value of that type is called.
TUTTI_API std::string name_of(Argument::Type type);
/// What stands for the argument where it is left out: "true", "inferred"; "" where it must be given.
TUTTI_API std::string default_of(const Argument& argument);
/// All kinds as a table, for docs/LAYERS.md.
TUTTI_API std::string layers_markdown();

}  // namespace tutti::nn
