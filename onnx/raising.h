// A graph that becomes an ONNX model: what forms ask of it.
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
  /// The node that gives a value; null for feeds, states and constants.
  const tutti::Node* producer(ValueId id) const;
  /// That node where it is of this op and nothing else reads its result; else null.
  const tutti::Node* only_for(ValueId id, const char* op) const;

  /// What the value is called in the model. Throws Error where ONNX does not give it.
  std::string name(ValueId id);
  /// The name of an input of a node.
  std::string in(const tutti::Node& n, size_t k) { return name(n.inputs.at(k)); }

  /// Adds a node at the place of the one that is being raised; returns the name of its first output.
  std::string add(const std::string& op, std::vector<std::string> inputs, Attributes attributes = {});
  /// The same with several outputs.
  std::vector<std::string> add_all(const std::string& op, std::vector<std::string> inputs, size_t outputs,
                                   Attributes attributes = {});
  /// A constant, equal ones once.
  std::string constant(const HostTensor& t);
  /// Of i64 [n], as ONNX wants shapes and axes.
  std::string integers(const Ints& all);
  /// A scalar, or `shape` of one number.
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
  std::map<std::string, std::string> wanted_;  // of a node's name: without its number
  std::map<std::pair<std::string, std::vector<std::byte>>, std::string> constants_;  // by type and bytes

  Model model_;
};

}  // namespace tutti::onnx
