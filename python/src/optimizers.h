#pragma once
#include "module.h"
#include "train/step/options.h"

namespace tutti::python {

/// The built-in optimizer of that name.
Optimizer optimizer_of(const std::string& kind, const std::map<std::string, double>& given);
/// An optimizer whose update is a Python function of a PyUpdate.
Optimizer traced_optimizer(const std::string& name, const std::map<std::string, double>& given, nb::object function);
/// A Python function (graph, [(name, value)], gradients, lr, step) as the optimizer's update.
UpdateFunction update_of(nb::object function);

void bind_optimizers(nb::module_& m);

}  // namespace tutti::python
