// An ONNX model as nodes of a graph.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "onnx/model.h"

namespace tutti::onnx {

/// An input of the model: its value in the graph and, where shapes hang on its numbers, those numbers. 64-bit integers
/// are i32 in the graph.
struct Input {
  Value value;
  const HostTensor* known = nullptr;
};

/// A BatchNormalization in training: what it read and what its running statistics become.
struct RunningStatistics {
  std::string mean, variance;  ///< names of the weights
  Value new_mean, new_variance;
};

/// What a lowering asks its caller.
struct LowerOptions {
  /// The value of a weight, of its type (64-bit integers as i32). A constant unless given.
  std::function<Value(Graph&, const std::string& name, const HostTensor& value)> weight = {};
  /// BatchNormalization takes the batch's statistics, and Dropout drops by `dropout`.
  bool training = false;
  std::function<Value(Value x, double p, const std::string& node)> dropout = {};
  /// Told of each node's results, and of the values from the `first` of the graph on that were made for them: integers
  /// of 64 bits that the graph computes in i32, `what` names the node.
  std::function<void(const std::string& what, size_t first, const Values& results)> integers = {};
  /// Where training tells the new running statistics.
  std::function<void(const RunningStatistics&)> statistics = {};
};

/// Adds the model's nodes to the graph, and returns a value per output, in their order. Throws Unsupported that names
/// every op without a handler (with node and opset), and for options and shapes that Tutti lacks; Error(invalid) for
/// inputs that do not fit.
Values lower(const Model& model, Graph& graph, const std::map<std::string, Input>& inputs,
             const LowerOptions& options = {});

/// A tensor as graphs have it: 64-bit integers as i32, the ends of their range as those of i32. Throws Unsupported that
/// begins with `place` for other numbers beyond 32 bits.
HostTensor narrowed(const HostTensor& t, const std::string& place);

/// Throws Unsupported that names every node whose op Tutti lacks.
void check_ops(const Model& model);

/// The ops that have a handler, in the order of their names.
std::vector<std::string> all_handlers();

}  // namespace tutti::onnx
