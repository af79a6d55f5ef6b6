// The state of lowering one model to a graph.
#pragma once
#include <map>
#include <set>
#include <string>

#include "graph/eval.h"
#include "onnx/lower.h"

namespace tutti::onnx {

class Lowering {
 public:
  Lowering(const Model& model, Graph& graph, const std::map<std::string, Input>& inputs, const LowerOptions& options);
  Values run();

  Graph& graph() const { return graph_; }
  const Model& model() const { return model_; }
  const LowerOptions& options() const { return options_; }
  /// The value of that name.
  Value value(const std::string& name);
  /// Its elements, if they depend on no feed and no trained weight.
  std::optional<Reals> numbers(const std::string& name);
  std::optional<Reals> elements(Value x) const;
  /// Whether a node or an output that is lowered reads it.
  bool live(const std::string& name) const { return live_.contains(name); }
  /// The outputs of a subgraph whose inputs have these values.
  Values run(const Body& body, const Values& inputs);

 private:
  struct Item {
    Value value;                        // null: not requested yet
    const HostTensor* known = nullptr;  // its elements, if the file or the caller provides them
  };
  /// Whether a value, and everything it depends on, is small enough to evaluate on the host.
  bool small(Value of) const;
  void check_inputs(const std::map<std::string, Input>& inputs);
  void add(const Node& node);
  /// Adds the nodes with a live result.
  void add_all(const std::vector<Node>& nodes);
  const Model& model_;
  Graph& graph_;
  const LowerOptions& options_;
  std::map<std::string, Item> items_;
  std::map<std::string, Tensor> fed_;  // known inputs by feed name
  std::set<std::string> live_;
};

}  // namespace tutti::onnx
