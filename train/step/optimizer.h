// Appends the optimizer's update to a step's graph. Each optimizer is a header in train/optimizers; `Optimizer` is a
// variant of all.
#pragma once
#include <string>

#include "core/base/export.h"
#include "graph/graph.h"
#include "nn/module.h"
#include "train/optimizers.h"

namespace tutti {

/// "sgd", "adam", …
TUTTI_API std::string name(const Optimizer& optimizer);
/// The optimizer's base learning rate.
TUTTI_API double learning_rate(const Optimizer& optimizer);
/// All optimizers with default hyperparameters, ordered by name.
TUTTI_API std::vector<Optimizer> all_optimizers();
/// The optimizer of that name with default hyperparameters. Throws Error(invalid) that lists the names.
TUTTI_API Optimizer optimizer_named(const std::string& name);
/// Pointers to the optimizer's hyperparameters; valid as long as `optimizer` lives.
TUTTI_API std::vector<Hyperparameter> hyperparameters(Optimizer& optimizer);
/// Throws Error(invalid) for invalid hyperparameters.
TUTTI_API void check(const Optimizer& optimizer);

/// Sets the next value of every parameter and of the optimizer's states ("optimizer.m.NAME", "optimizer.v.NAME").
/// gradients[k] is the gradient of parameters[k] and has its type; `lr` is a float scalar; `step` is an i32, the number
/// of steps done before. Throws Error(invalid) like check().
TUTTI_API void apply_optimizer(Graph& g, const Optimizer& optimizer, const std::vector<nn::Parameter>& parameters,
                               const Values& gradients, Value lr, Value step);

}  // namespace tutti
