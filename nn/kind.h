// Modules by their names in PyTorch, with arguments of PyTorch's names: what a file describes a model by. Each is a
// record of nn/kinds.
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

/// Of a whole number, a number, a flag, a text, whole numbers, and modules with their names.
using ArgumentValue = std::variant<int64_t, double, bool, std::string, Shape, NamedLayers>;

/// What a module takes.
struct TUTTI_API Argument {
  enum Type { whole, real, flag, text, sizes, layers, branches };
  std::string name;
  Type type = whole;
  std::optional<ArgumentValue> otherwise = {};  ///< where it is left out; none: it must be given
  std::string doc = {};
  int64_t least = 1;                      ///< of whole numbers
  double most = 0;                        ///< of numbers, from 0 to below it; 0: any
  std::vector<std::string> choices = {};  ///< of a text
  /// May be left out, but must be the size of that axis of what comes in, where given.
  std::optional<int64_t> axis = {};
  /// May be left out: how many values the data's tokens take, or the outputs that the data asks of the last module.
  enum Source { nowhere, tokens, outputs } data = nowhere;
};

/// Arguments by name, checked and complete but for those of an axis.
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
  std::string name;  ///< PyTorch's, with a capital; else one of our own
  std::string doc;
  std::vector<Argument> arguments;
  Layer (*make)(const Arguments&);  ///< may throw Error(invalid)
  bool reads_tokens = false;        ///< takes i32, numbers below its "num_embeddings"
};

/// In the order of the files of nn/kinds.
TUTTI_API std::span<const LayerKind* const> all_layer_kinds();
/// Throws Error(invalid) that names the nearest, or lists all.
TUTTI_API const LayerKind& find_layer_kind(const std::string& name);
/// "integer", "number", …: what a value of that type is called.
TUTTI_API std::string name_of(Argument::Type type);
/// What stands for the argument where it is left out: "true", "inferred"; "" where it must be given.
TUTTI_API std::string default_of(const Argument& argument);
/// All kinds as a table, for docs/LAYERS.md.
TUTTI_API std::string layers_markdown();

}  // namespace tutti::nn
