// What an optimizer is made of: what it sees of one parameter while a step is built, and its hyperparameters.
#pragma once
#include <fmt/format.h>

#include <string>

#include "graph/graph.h"

namespace tutti {

/// One parameter, its gradient `d` and its learning rate; `shared` is what the optimizer made once for all parameters.
struct Update {
  Graph& g;
  std::string name;
  Value p, d, lr;
  bool decays;  ///< whether weight decay concerns it
  Values shared;

  /// The optimizer's weight decay, or 0 for a parameter that has none.
  double decay(double weight_decay) const { return decays ? weight_decay : 0; }

  /// The state "optimizer.WHICH.NAME", of the parameter's type.
  Value moment(const char* which) const { return g.state(key(which), p.type(), StateRole::optimizer); }
  void set_parameter(Value next) const { g.set_state(name, next); }
  void set_moment(const char* which, Value next) const { g.set_state(key(which), next); }

 private:
  std::string key(const char* which) const { return fmt::format("optimizer.{}.{}", which, name); }
};

/// One hyperparameter of an optimizer: the option of commands that sets it, what it is, and where it lies.
struct Hyperparameter {
  const char* option;
  const char* doc;
  double* value;
  bool* flag = nullptr;  ///< in place of a value
};

}  // namespace tutti
