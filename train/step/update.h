// Building blocks of optimizers: the update of one parameter, and hyperparameters.
#pragma once
#include <fmt/format.h>

#include <string>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "graph/graph.h"
#include "graph/ops/add.h"
#include "graph/ops/mul.h"

namespace tutti {

/// One parameter, its gradient `d` and its learning rate; `shared` holds values that the optimizer computes once for
/// all parameters.
struct Update {
  Graph& g;
  std::string name;
  Value p, d, lr;
  bool decays;  ///< whether weight decay applies
  Values shared;

  /// The optimizer's weight decay, or 0 for a parameter without weight decay.
  double decay(double weight_decay) const { return decays ? weight_decay : 0; }

  /// The gradient plus weight decay (L2 regularization).
  Value gradient(double weight_decay) const { return decay(weight_decay) == 0 ? d : d + decay(weight_decay) * p; }

  /// The state "optimizer.WHICH.NAME", of the parameter's type, at first 0. Throws Error(invalid) for a WHICH that is
  /// empty, has a dot, or is "average" (the averaged weights).
  Value moment(const std::string& which) const { return g.state(key(which), p.type(), StateRole::optimizer); }
  void set_parameter(Value next) const { g.set_state(name, next); }
  void set_moment(const std::string& which, Value next) const {
    moment(which);
    g.set_state(key(which), next);
  }

 private:
  std::string key(const std::string& which) const {
    if (which.empty() || which.find('.') != std::string::npos || which == "average")
      throw invalid(fmt::format("'{}' is not a name of an optimizer's moment", which),
                    "use a name without a dot, other than average");
    return fmt::format("optimizer.{}.{}", which, name);
  }
};

/// Throws Error(invalid) that names the option for a number outside [0, 1).
inline void check_share(const char* hyperparameter, double x) {
  if (!(x >= 0 && x < 1)) throw invalid_option(hyperparameter, x, "must be in [0, 1)");
}

/// One hyperparameter of an optimizer: its option, such as "weight-decay" (which a pattern of parameters may turn off),
/// documentation and value.
struct Hyperparameter {
  const char* option;
  const char* doc;
  double* value;
  bool* flag = nullptr;  ///< used instead of `value` for switches
};

}  // namespace tutti
