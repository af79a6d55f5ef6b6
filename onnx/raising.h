// The state of raising a graph to an ONNX model, used by forms.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "onnx/model.h"

namespace tutti::onnx {

class Raising {
 public:
  using Attributes = std::map<std::string, Attribute>;

  explicit Raising(const Graph& graph, const std::map<std::string, std::string>& outputs);
  Model run();

  const Graph& graph() const { return graph_; }
  const TensorType& type(ValueId id) const { return graph_.info(id).type; }
  const Shape& shape(ValueId id) const { return type(id).shape; }
  /// The node that produces a value; null for feeds, states and constants.
  const tutti::Node* producer(ValueId id) const;
  /// The producer, if it has this op and nothing else reads its result; else null.
  const tutti::Node* only_for(ValueId id, const char* op) const;

  /// The value's name in the model. Throws Error if ONNX does not provide it.
  std::string name(ValueId id);
  /// The name of an input of a node.
  std::string in(const tutti::Node& n, size_t k) { return name(n.inputs.at(k)); }

  /// Adds a node with the place of the node being raised; returns the name of its first output.
  std::string add(const std::string& op, std::vector<std::string> inputs, Attributes attributes = {});
  /// The same with several outputs.
  std::vector<std::string> add_all(const std::string& op, std::vector<std::string> inputs, size_t outputs,
                                   Attributes attributes = {});
  /// A constant; equal constants are added once.
  std::string constant(const HostTensor& t);
  /// A constant i64 [n], as ONNX requires for shapes and axes.
  std::string integers(const Ints& all);
  /// A constant filled with one number, a scalar by default.
  std::string number(DType dtype, double x, const Shape& shape = {});

 private:
  void add_node(const tutti::Node& n);
  std::string unique(const std::string& wanted);
  void drop_unread();
  void name_outputs();
  void number_names();
  const Graph& graph_;
  const std::map<std::string, std::string>& outputs_;
  const tutti::Node* current_ = nullptr;
  std::vector<size_t> uses_;
  std::vector<std::string> names_;  // by value; "" until known
  std::set<std::string> taken_;
  std::map<std::string, std::string> wanted_;  // by node name: the name without its number
  std::map<std::pair<std::string, std::vector<std::byte>>, std::string> constants_;  // by type and bytes

  Model model_;
};

}  // namespace tutti::onnx
