// What passes that build a new graph share: copying the interface (feeds, states) and mapping old values to new ones.
#pragma once
#include "graph/op.h"

namespace tutti {

class Rewriter {
 public:
  /// Declares every feed and state of `from` anew, in order, so that the interface of the step stays what it was.
  explicit Rewriter(const Graph& from);
  /// The new value of an old one; constants are copied when first asked for.
  Value operator[](ValueId old);
  Values map(const std::vector<ValueId>& old);
  void set(ValueId old, Value value) { map_[old] = value; }
  /// Adds the same node over the mapped inputs and maps its results.
  Values copy(const Node& n);
  /// The graph being built.
  Graph& to() { return to_; }
  /// Sets the states and hands the graph out.
  Graph finish();

 private:
  const Graph& from_;
  Graph to_;
  Values map_;
};

/// Per node: whether a state needs it.
std::vector<bool> live_nodes(const Graph& g);

}  // namespace tutti
