// Appends the optimizer's update to a step: nodes on state that the device holds. An optimizer is one header of
// train/optimizers; `Optimizer` is any of them.
#pragma once
#include <string>

#include "core/base/export.h"
#include "graph/graph.h"
#include "nn/module.h"
#include "train/optimizers.h"

namespace tutti {

/// "sgd", "adam", …
TUTTI_API std::string name(const Optimizer& optimizer);
/// The learning rate it was made with.
TUTTI_API double learning_rate(const Optimizer& optimizer);
/// One of each with its defaults, in the order of their names.
TUTTI_API std::vector<Optimizer> all_optimizers();
/// The one of that name with its defaults. Throws Error(invalid) that lists the names.
TUTTI_API Optimizer optimizer_named(const std::string& name);
/// Of that object; valid as long as it.
TUTTI_API std::vector<Hyperparameter> hyperparameters(Optimizer& optimizer);
/// Throws Error(invalid) for hyperparameters that do not fit each other.
TUTTI_API void check(const Optimizer& optimizer);

/// Sets the next value of every named parameter state and of the optimizer's own states ("optimizer.m.NAME",
/// "optimizer.v.NAME"). gradients[k] belongs to parameters[k] and has its type; `lr` is a float scalar, `step` the i32
/// number of steps done before this one. Throws Error(invalid) as check() does.
TUTTI_API void apply_optimizer(Graph& g, const Optimizer& optimizer, const std::vector<nn::Parameter>& parameters,
                               const Values& gradients, Value lr, Value step);

}  // namespace tutti
