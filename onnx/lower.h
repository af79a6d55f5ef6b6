// Lowers an ONNX model to nodes of a graph.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "onnx/model.h"

namespace tutti::onnx {

/// An input of the model: its value in the graph and, if shapes depend on its elements, those elements. 64-bit integers
/// are i32 in the graph.
struct Input {
  Value value;
  const HostTensor* known = nullptr;
};

/// A BatchNormalization in training: the names of its running statistics and their new values.
struct RunningStatistics {
  std::string mean, variance;  ///< names of the weights
  Value new_mean, new_variance;
};

/// Options and callbacks of lower().
struct LowerOptions {
  /// Names of the outputs to compute; nodes that none of them needs are left out. Empty: all.
  std::vector<std::string> outputs = {};
  /// Returns the value of a weight, with its type (64-bit integers as i32). By default a constant.
  std::function<Value(Graph&, const std::string& name, const HostTensor& value)> weight = {};
  /// Whether BatchNormalization uses batch statistics and Dropout calls `dropout`.
  bool training = false;
  std::function<Value(Value x, double p, const std::string& node)> dropout = {};
  /// Called after each node with its results and the id of the `first` value added for it, to check 64-bit integers
  /// that the graph computes in i32. `what` names the node.
  std::function<void(const std::string& what, size_t first, const Values& results)> integers = {};
  /// Receives the new running statistics in training.
  std::function<void(const RunningStatistics&)> statistics = {};
};

/// Adds the model's nodes to the graph and returns one value per asked output, in order. Throws Unsupported naming
/// every op without a handler (with node and opset), and for unsupported options and shapes; Error(invalid) for inputs
/// that do not match.
Values lower(const Model& model, Graph& graph, const std::map<std::string, Input>& inputs,
             const LowerOptions& options = {});

/// Converts a tensor for graphs: 64-bit integers become i32, and their limits become those of i32. Throws Unsupported,
/// beginning with `place`, for other integers beyond 32 bits.
HostTensor narrowed(const HostTensor& t, const std::string& place);

/// Throws Unsupported naming every node that these outputs need (none named: all) whose op Tutti does not support.
void check_ops(const Model& model, const std::vector<std::string>& outputs = {});

/// The ops that have a handler, sorted by name.
std::vector<std::string> all_handlers();

}  // namespace tutti::onnx
