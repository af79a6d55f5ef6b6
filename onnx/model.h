// The contents of an ONNX file: a graph of named tensors, validated, without protobuf types.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/attrs.h"
#include "core/base/status.h"
#include "data/host_tensor.h"

namespace tutti::onnx {

/// Thrown for a valid file that uses something Tutti does not support: an op, an option, a type.
class Unsupported : public Error {
 public:
  Unsupported(const std::string& message, std::string remedy) : Error(Code::invalid, message, std::move(remedy)) {}
};

/// The format's code of an element type.
using ElementType = int32_t;
/// "FLOAT", "INT64", …; "type 99" for an unknown code.
std::string element_name(ElementType type);
/// The corresponding dtype: INT8 and INT16 become i32; nullopt if Tutti has none.
std::optional<DType> dtype_of(ElementType type);
/// The format's code of a dtype.
ElementType element_type(DType type);

struct Body;

/// An attribute that is a graph: a branch of If, the body of Loop. Null if it is of a kind that Tutti does not read.
struct Subgraph {
  std::shared_ptr<const Body> body;
  bool operator==(const Subgraph&) const = default;
};
/// The value of a node's attribute.
using Attribute =
    std::variant<int64_t, double, std::string, HostTensor, Ints, Reals, std::vector<std::string>, Subgraph>;

struct Node {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;  ///< "": omitted
  std::map<std::string, Attribute> attributes;
  size_t place = 0;  ///< index in the file
  bool operator==(const Node&) const = default;
  /// "node 3 'conv1' (Conv)", for messages.
  std::string text() const;
};

/// An input or an output of the graph.
struct Port {
  std::string name;
  ElementType type = 0;
  bool has_shape = false;
  Shape shape;                       ///< -1 for a dynamic size
  std::vector<std::string> symbols;  ///< names of dynamic sizes ("batch"); "" for others
};

/// Types of the values whose HostTensor has another: INT8 and INT16 are stored as i32.
using NarrowTypes = std::map<std::string, ElementType>;

/// The contents of a subgraph. It also reads names of the graphs around it. Its ports have names only.
struct Body {
  std::vector<Node> nodes;  ///< in topological order
  HostTensors weights;
  std::vector<Port> inputs, outputs;
};

struct Model {
  std::string path;
  std::string name = {};  ///< of its graph
  int64_t opset = 0;
  std::map<std::string, int64_t> opsets;  ///< of every domain that the file names
  std::vector<Node> nodes;                ///< in topological order
  HostTensors weights;                    ///< the initializers
  std::vector<Port> inputs, outputs;      ///< inputs without those that have an initializer
  NarrowTypes narrow = {};                ///< of initializers and Constant nodes, in subgraphs too
};

struct ReadOptions {
  int64_t oldest = 7, newest = 26;  ///< accepted opsets
};

/// Reads and validates a model. External weights are read only from the model's folder. Throws Error(invalid) naming
/// file, place, expectation and remedy; Unsupported for types that Tutti does not have.
Model read(const std::string& path, const ReadOptions& options = {});
/// The same from the bytes of a file; `path` is for messages and for external weights.
Model parse(const std::string& bytes, const std::string& path, const ReadOptions& options = {});
/// The bytes of a file of at most 2 GiB.
std::string file_bytes(const std::string& path);
/// One tensor from its own file, as in ONNX's test data.
HostTensor read_tensor(const std::string& path);

}  // namespace tutti::onnx
