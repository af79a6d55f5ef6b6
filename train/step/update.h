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

  /// The state "optimizer.WHICH.NAME", of the parameter's type.
  Value moment(const char* which) const { return g.state(key(which), p.type(), StateRole::optimizer); }
  void set_parameter(Value next) const { g.set_state(name, next); }
  void set_moment(const char* which, Value next) const { g.set_state(key(which), next); }

 private:
  std::string key(const char* which) const { return fmt::format("optimizer.{}.{}", which, name); }
};

/// Throws Error(invalid) that names the option for a number outside [0, 1).
inline void check_share(const char* hyperparameter, double x) {
  if (!(x >= 0 && x < 1)) throw invalid_option(hyperparameter, x, "must be in [0, 1)");
}

/// One hyperparameter of an optimizer: its command-line option, documentation and value.
struct Hyperparameter {
  const char* option;
  const char* doc;
  double* value;
  bool* flag = nullptr;  ///< used instead of `value` for switches
};

}  // namespace tutti
