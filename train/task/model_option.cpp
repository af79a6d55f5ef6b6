#include "train/task/model_option.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/option_text.h"
#include "core/base/text.h"
#include "train/task/losses.h"

namespace tutti {
namespace {

using nn::Scheme;

constexpr std::array<std::pair<const char*, Scheme>, 5> schemes = {{{"torch", Scheme::torch_default},
                                                                    {"kaiming_uniform", Scheme::kaiming_uniform},
                                                                    {"kaiming_normal", Scheme::kaiming_normal},
                                                                    {"xavier_uniform", Scheme::xavier_uniform},
                                                                    {"xavier_normal", Scheme::xavier_normal}}};

std::string to_text(const std::string& value) { return value; }
std::string to_text(int64_t value) { return std::to_string(value); }
std::string to_text(double value) { return decimal(value); }
std::string to_text(Scheme value) {
  auto it = std::ranges::find(schemes, value, &std::pair<const char*, Scheme>::second);
  return it == schemes.end() ? "kaiming_normal_out" : it->first;  // set by models only
}

std::vector<ModelOption> option_records() {
  using O = ModelOptions;
  using S = ModelOption::Scope;
  return {
      {"size", "Model", +[](O& o) -> std::string& { return o.size; },
       "Model size (`tutti models` lists the sizes; default: the first)", S::all, nullptr, "tiny"},
      {"layers", "Model", +[](O& o) -> std::string& { return o.layers; },
       "Layer sizes of the mlp, input first (default: 784,512,256,10)", S::listed},
      {"activation", "Model", +[](O& o) -> std::string& { return o.net.activation; },
       "relu, leaky_relu, elu, gelu, gelu_tanh, sigmoid, tanh, silu, softplus", S::listed,
       [](const O& o) { nn::activation(o.net.activation); }},
      {"dropout",
       "Model",
       +[](O& o) -> double& { return o.net.dropout; },
       "Dropout probability after each hidden layer, in [0, 1); the model's default unless given",
       S::listed,
       [](const O& o) {
         if (!(o.net.dropout >= 0 && o.net.dropout < 1))
           throw invalid_option("dropout", o.net.dropout, "must be in [0, 1)");
       },
       {},
       true},
      {"loss", "Model", +[](O& o) -> std::string& { return o.loss; },
       "Loss of a model from a file, instead of the file's own (`tutti help losses`)", S::listed,
       [](const O& o) {
         if (!o.loss.empty()) find_loss(o.loss);
       }},
      {"init", "Model", +[](O& o) -> Scheme& { return o.net.init; },
       "Initial weights: torch, kaiming_uniform, kaiming_normal, xavier_uniform, xavier_normal, or a file with weights "
       "of the model (safetensors, the index of several, .npz, GGUF, or ONNX)",
       S::listed},
      {"context", "Data", +[](O& o) -> int64_t& { return o.context; },
       "Tokens per text sample (0: the model's default)", S::text},
  };
}

}  // namespace

std::span<const ModelOption> model_options() {
  static const std::vector<ModelOption> all = option_records();
  return all;
}

std::string ModelOption::text(ModelOptions options) const {
  return std::visit([&](auto of) { return to_text(of(options)); }, field);
}

bool ModelOption::set(const ModelOptions& options) const { return text(options) != text({}); }

void ModelOption::reset(ModelOptions& options) const {
  ModelOptions plain;
  std::visit([&](auto of) { of(options) = of(plain); }, field);
}

bool ModelOption::applies(const ModelDef& model, const std::string& size) const {
  switch (scope) {
    case Scope::all: return true;
    case Scope::listed: return model.takes.contains(std::string(name)) && !model.size(size).fixed;
    case Scope::text: return bool(model.context);
  }
  return false;
}

void check(const ModelOptions& options) {
  for (const ModelOption& option : model_options())
    if (option.check) option.check(options);
}

nn::Scheme scheme_named(const std::string& name) {
  auto it = std::ranges::find(schemes, name, [](const auto& s) { return std::string_view(s.first); });
  if (it != schemes.end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [known, scheme] : schemes) names.emplace_back(known);
  throw invalid_option("init", name, "unknown", "use " + alternatives(names) + ", or a file of weights");
}

}  // namespace tutti
