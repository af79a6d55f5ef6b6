#include "train/resume.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"

namespace tutti {

const HostTensor* stored(const Checkpoint& checkpoint, const std::string& name, const TensorType& type) {
  auto it = checkpoint.tensors.find(name);
  if (it == checkpoint.tensors.end()) {
    if (name.starts_with("optimizer."))
      throw invalid(fmt::format("the checkpoint has no '{}': it was made with another optimizer", name),
                    "resume with the optimizer it was trained with");
    if (is_loss_scaling(name))
      throw invalid(fmt::format("the checkpoint has no '{}': its loss scaling is not whole", name),
                    "use another checkpoint");
    return nullptr;
  }
  if (it->second.type != type)
    throw invalid(
        fmt::format("'{}' is {} in the checkpoint, {} here", name, to_string(it->second.type), to_string(type)),
        "resume with the options the checkpoint was made with");
  return &it->second;
}

void expect_same_model(const Checkpoint& checkpoint, const std::vector<nn::Parameter>& parameters) {
  const char* remedy = "use the model options it was trained with";
  for (const nn::Parameter& p : parameters) {
    auto it = checkpoint.tensors.find(p.name);
    std::string there = it == checkpoint.tensors.end() ? "missing" : to_string(it->second.type);
    if (there != to_string(p.type))
      throw invalid(
          fmt::format("the checkpoint is of another architecture: parameter '{}' is {} there, {} in the model", p.name,
                      there, to_string(p.type)),
          remedy);
  }
  for (const auto& [name, tensor] : checkpoint.tensors) {
    bool known = name.find('.') == std::string::npos || name.starts_with("optimizer.") ||
                 std::any_of(parameters.begin(), parameters.end(), [&](const auto& p) { return p.name == name; });
    if (!known)
      throw invalid(fmt::format("the checkpoint is of another architecture: parameter '{}' ({}) is not in the model",
                                name, to_string(tensor.type)),
                    remedy);
  }
}

void expect_same_training(const Checkpoint& checkpoint, const Optimizer& optimizer, Precision precision) {
  auto there = checkpoint.metadata.find("optimizer");
  if (there != checkpoint.metadata.end() && there->second != name(optimizer))
    throw invalid(
        fmt::format("the checkpoint was made with the optimizer {}, this run uses {}", there->second, name(optimizer)),
        "resume with the optimizer it was trained with");
  there = checkpoint.metadata.find("precision");
  std::string trained_in = there == checkpoint.metadata.end() ? name(Precision::f32) : there->second;
  if (trained_in != name(precision))
    throw invalid(
        fmt::format("the checkpoint was trained in precision {}, this run uses {}", trained_in, name(precision)),
        "resume with --precision " + trained_in);
}

}  // namespace tutti
