// Shared by passes that build a new graph: copies the interface (feeds, states) and maps old values to new ones.
#pragma once
#include <set>
#include <string>

#include "graph/op.h"

namespace tutti {

class Rewriter {
 public:
  /// Declares all feeds and states of `from`, in order, so that the step's interface is unchanged; except the states
  /// `without`, which have no value until set() gives one.
  explicit Rewriter(const Graph& from, std::set<std::string> without = {});
  /// The new value of an old one; constants are copied at the first use.
  Value operator[](ValueId old);
  Values map(const std::vector<ValueId>& old);
  void set(ValueId old, Value value) { map_[old] = value; }
  /// Adds the same node over the mapped inputs and maps its results.
  Values copy(const Node& n);
  /// The graph being built.
  Graph& to() { return to_; }
  /// Sets the states and returns the graph.
  Graph finish();

 private:
  const Graph& from_;
  std::set<std::string> without_;
  Graph to_;
  Values map_;
};

/// Per node: whether a state depends on it.
std::vector<bool> live_nodes(const Graph& g);

}  // namespace tutti
