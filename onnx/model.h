// What an ONNX file says: a graph of named tensors, read and checked, without protobuf's types.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/attrs.h"
#include "core/base/status.h"
#include "data/host_tensor.h"

namespace tutti::onnx {

/// A file that is sound, but has what Tutti lacks: an op, an option, a type.
class Unsupported : public Error {
 public:
  Unsupported(const std::string& message, std::string remedy) : Error(Code::invalid, message, std::move(remedy)) {}
};

/// The format's number of an element type.
using ElementType = int32_t;
/// "FLOAT", "INT64", …; "type 99" for a number that the format does not have.
std::string element_name(ElementType type);
/// How Tutti holds it: INT8 and INT16 as i32; nothing for those that it has no type for.
std::optional<DType> dtype_of(ElementType type);
/// The format's number of one of our types.
ElementType element_type(DType type);

/// The value of a node's attribute; a graph is named only (it is never read).
struct Subgraph {
  bool operator==(const Subgraph&) const = default;
};
using Attribute =
    std::variant<int64_t, double, std::string, HostTensor, Ints, Reals, std::vector<std::string>, Subgraph>;

struct Node {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;  ///< "": left out
  std::map<std::string, Attribute> attributes;
  size_t place = 0;  ///< in the file, from 0
  bool operator==(const Node&) const = default;
  /// "node 3 'conv1' (Conv)", for messages.
  std::string text() const;
};

/// An input or an output of the graph.
struct Port {
  std::string name;
  ElementType type = 0;
  bool has_shape = false;
  Shape shape;                       ///< -1 where a size is open
  std::vector<std::string> symbols;  ///< names of open sizes ("batch"), "" for the others
};

struct Model {
  std::string path;
  std::string name = {};  ///< of its graph
  int64_t opset = 0;
  std::map<std::string, int64_t> opsets;  ///< of every domain that the file names
  std::vector<Node> nodes;                ///< each reads what inputs, weights and earlier nodes give
  HostTensors weights;                    ///< the initializers
  std::vector<Port> inputs, outputs;      ///< inputs without those that a weight gives
};

struct ReadOptions {
  int64_t oldest = 13, newest = 23;  ///< opsets that are taken
};

/// Reads and checks a model. Weights in files of their own are read from the model's folder and nowhere else. Throws
/// Error(invalid) that names file, place, expectation and remedy; Unsupported for types that Tutti lacks.
Model read(const std::string& path, const ReadOptions& options = {});
/// The same from the bytes of a file; `path` is for messages and for weights in files of their own.
Model parse(const std::string& bytes, const std::string& path, const ReadOptions& options = {});
/// One tensor from a file of its own, as ONNX's test data has them.
HostTensor read_tensor(const std::string& path);

}  // namespace tutti::onnx
