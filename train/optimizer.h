// Appends the optimizer's update to a step: nodes on state that the device holds.
#pragma once
#include <string>
#include <variant>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// Stochastic gradient descent with PyTorch's momentum: m' = momentum m + g; p' = p - lr m' (nesterov: lr (g + momentum
/// m')); weight_decay is added to the gradient.
struct TUTTI_API Sgd {
  double lr = 1e-2, momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
};

/// Kingma & Ba, "Adam" (2015); weight_decay is added to the gradient.
struct TUTTI_API Adam {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
};

/// Loshchilov & Hutter, "Decoupled weight decay regularization" (2019).
struct TUTTI_API AdamW {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 1e-2;
};

using Optimizer = std::variant<Sgd, Adam, AdamW>;

/// "sgd", "adam" or "adamw".
TUTTI_API std::string name(const Optimizer& optimizer);
/// The learning rate it was made with.
TUTTI_API double learning_rate(const Optimizer& optimizer);

/// Sets the next value of every named parameter state and of the optimizer's own states ("optimizer.m.NAME",
/// "optimizer.v.NAME"). gradients[k] belongs to parameters[k] and has its type; `lr` is a float scalar, `step` the i32
/// number of steps done before this one.
TUTTI_API void apply_optimizer(Graph& g, const Optimizer& optimizer, const std::vector<std::string>& parameters,
                               const Values& gradients, Value lr, Value step);

}  // namespace tutti
