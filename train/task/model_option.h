// The options of models as records, used by the command line, checkpoints, benchmarks and messages.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "train/task/model.h"

namespace tutti {

/// One option of models. Its record is in model_option.cpp.
struct TUTTI_API ModelOption {
  template <class T>
  using Field = T& (*)(ModelOptions&);
  enum class Scope {
    all,     ///< every model takes it
    listed,  ///< models that name it in ModelDef::takes
    text,    ///< models that read text: those with ModelDef::context
  };

  std::string_view name;   ///< "layers": `--layers`
  std::string_view group;  ///< heading in help texts
  /// A Scheme has no text that alone decides: front ends also take a file of weights.
  std::variant<Field<std::string>, Field<int64_t>, Field<double>, Field<nn::Scheme>> field;
  std::string doc;
  Scope scope = Scope::all;
  /// Throws Error(invalid) for a value that no model can take.
  void (*check)(const ModelOptions&) = nullptr;
  std::string_view example = {};  ///< as OptionRecord::example
  bool in_training = false;       ///< it changes training steps alone

  /// The value as text.
  std::string text(ModelOptions options) const;
  /// Whether the value is not the default.
  bool set(const ModelOptions& options) const;
  /// Sets the default.
  void reset(ModelOptions& options) const;
  /// Whether the model of that size takes it.
  bool applies(const ModelDef& model, const std::string& size) const;
};

/// All options, in the order of help texts.
TUTTI_API std::span<const ModelOption> model_options();
/// Throws Error(invalid) for the first value that no model can take.
TUTTI_API void check(const ModelOptions& options);
/// The initialization of that name, such as "kaiming_uniform". Throws Error(invalid) that lists the names.
TUTTI_API nn::Scheme scheme_named(const std::string& name);

}  // namespace tutti
