// Reads a model and validates names, order, sizes and types.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "core/base/printable.h"
#include "onnx/decode.h"
#include "onnx/model.h"

namespace tutti::onnx {
namespace {

const char* const damaged = "export the model again; the file is damaged";

/// The bytes of a file of at most 2 GiB, the format's limit.
std::string file_bytes(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    throw invalid(fmt::format("{}: no such file", path), "give the path of an ONNX model");
  uint64_t size = fs::file_size(path, error);
  if (error || size > uint64_t{0x7fffffff})
    throw invalid(fmt::format("{}: {} bytes, expected at most 2 GiB", path, size),
                  "keep large weights in a file of their own (external data)");
  std::string bytes(size, '\0');
  std::ifstream in(path, std::ios::binary);
  if (!in.read(bytes.data(), static_cast<std::streamsize>(size)))
    throw invalid(fmt::format("{}: cannot be read", path), "check the file's permissions");
  return bytes;
}

class Reader {
 public:
  Reader(const std::string& path, const ReadOptions& options) : path_(path), options_(options) {}

  Model model(const std::string& bytes) {
    pb::Model m;
    if (!m.ParseFromString(bytes)) fail("is not an ONNX model, or the file is truncated");
    if (!m.has_graph() || m.ir_version() <= 0) fail("is not an ONNX model: it has no graph or no ir_version");
    Model out;
    out.path = path_;
    out.name = m.graph().name();
    opsets(m, out);
    const pb::Graph& g = m.graph();
    if (g.sparse_initializer_size() > 0)
      throw Unsupported(fmt::format("{}: sparse initializers are not supported", path_),
                        "store the weights as dense tensors");
    for (const pb::Tensor& t : g.initializer()) {
      std::string name = t.name();
      if (name.empty()) fail("an initializer without a name");
      if (!known_.insert(name).second) fail(fmt::format("'{}' is defined twice", printable(name)));
      out.weights.emplace(name, decode(t, fmt::format("{}: initializer '{}'", path_, printable(name)), path_));
    }
    for (const pb::Port& p : g.input()) {
      if (out.weights.contains(p.name())) continue;
      out.inputs.push_back(port(p, "input"));
      if (!known_.insert(p.name()).second) fail(fmt::format("input '{}' is defined twice", printable(p.name())));
    }
    nodes(g, out);
    for (const pb::Port& p : g.output()) {
      out.outputs.push_back(port(p, "output"));
      if (!known_.contains(p.name())) fail(fmt::format("output '{}' is not produced by any node", printable(p.name())));
    }
    if (out.outputs.empty()) fail("the graph has no output");
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw invalid(fmt::format("{}: {}", path_, what), damaged); }

  void opsets(const pb::Model& m, Model& out) const {
    for (const pb::OperatorSet& s : m.opset_import()) {
      std::string domain = s.domain() == "ai.onnx" ? "" : s.domain();
      if (!out.opsets.emplace(domain, s.version()).second)
        fail(fmt::format("opset of domain '{}' is defined twice", printable(domain)));
    }
    auto it = out.opsets.find("");
    const std::string remedy = fmt::format("export the model with opset {} to {}", options_.oldest, options_.newest);
    if (it == out.opsets.end())
      throw Unsupported(fmt::format("{}: the model imports no opset of the domain ai.onnx", path_), remedy);
    out.opset = it->second;
    if (out.opset < options_.oldest || out.opset > options_.newest)
      throw Unsupported(
          fmt::format("{}: opset {}, expected {} to {}", path_, out.opset, options_.oldest, options_.newest),
          remedy + ", or convert it with onnx.version_converter");
  }

  Port port(const pb::Port& p, const char* kind) const {
    if (p.name().empty()) fail(fmt::format("an {} without a name", kind));
    if (!p.type().has_tensor_type())
      throw Unsupported(fmt::format("{}: {} '{}' is not a tensor", path_, kind, printable(p.name())),
                        "use tensors, not sequences, maps or optionals");
    Port out{.name = p.name(), .type = p.type().tensor_type().elem_type()};
    if (!dtype_of(out.type))
      throw Unsupported(fmt::format("{}: {} '{}' has the unsupported element type {}", path_, kind, printable(p.name()),
                                    element_name(out.type)),
                        "use FLOAT, DOUBLE, FLOAT16, BFLOAT16, INT64, INT32, INT16, INT8, UINT8, UINT32 or BOOL");
    out.has_shape = p.type().tensor_type().has_shape();
    for (const pb::Dimension& d : p.type().tensor_type().shape().dim()) {
      bool open = !d.has_dim_value();
      if (!open && d.dim_value() < 0)
        fail(fmt::format("{} '{}' has the dimension {}, expected 0 or more", kind, printable(p.name()), d.dim_value()));
      out.shape.push_back(open ? -1 : d.dim_value());
      out.symbols.push_back(open ? d.dim_param() : "");
    }
    return out;
  }

  void nodes(const pb::Graph& g, Model& out) {
    std::set<std::string> later;
    for (const pb::Node& n : g.node())
      for (const std::string& name : n.output()) later.insert(name);
    for (int k = 0; k < g.node_size(); ++k) {
      const pb::Node& n = g.node(k);
      Node node{.name = n.name(),
                .op = n.op_type(),
                .domain = n.domain() == "ai.onnx" ? "" : n.domain(),
                .place = static_cast<size_t>(k)};
      node.inputs.assign(n.input().begin(), n.input().end());
      node.outputs.assign(n.output().begin(), n.output().end());
      if (node.op.empty()) fail(fmt::format("node {} has no op_type", k));
      for (const std::string& name : node.inputs) {
        if (name.empty() || known_.contains(name)) continue;
        if (later.contains(name))
          fail(
              fmt::format("{} reads '{}', which is produced by this node or a later one: the graph has a cycle, or its "
                          "nodes are not sorted",
                          node.text(), printable(name)));
        fail(fmt::format("{} reads '{}', which no node, input or initializer defines", node.text(), printable(name)));
      }
      for (const std::string& name : node.outputs)
        if (!name.empty() && !known_.insert(name).second)
          fail(fmt::format("{} produces '{}', which is already defined", node.text(), printable(name)));
      for (const pb::Attribute& a : n.attribute())
        if (!node.attributes.emplace(a.name(), attribute(a, node)).second)
          fail(fmt::format("{}: attribute '{}' is defined twice", node.text(), printable(a.name())));
      out.nodes.push_back(std::move(node));
    }
  }

  Attribute attribute(const pb::Attribute& a, const Node& node) const {
    std::string place = fmt::format("{}: attribute '{}'", node.text(), printable(a.name()));
    if (!a.ref_attr_name().empty()) fail(place + " has ref_attr_name, which is only allowed inside a function");
    switch (a.type()) {
      case 1: return static_cast<double>(a.f());
      case 2: return a.i();
      case 3: return a.s();
      case 4: return decode(a.t(), fmt::format("{}: {}", path_, place), path_);
      case 6: return Reals(a.floats().begin(), a.floats().end());
      case 7: return Ints(a.ints().begin(), a.ints().end());
      case 8: return std::vector<std::string>(a.strings().begin(), a.strings().end());
      case 5:
      case 9:
      case 10:
      case 11:
      case 12:
      case 13:
      case 14: return Subgraph{};
      default: fail(fmt::format("{} has the unknown attribute type {}", place, a.type()));
    }
  }

  std::string path_;
  ReadOptions options_;
  std::set<std::string> known_;  // names defined so far
};

}  // namespace

std::string Node::text() const {
  return name.empty() ? fmt::format("node {} ({})", place, printable(op))
                      : fmt::format("node {} '{}' ({})", place, printable(name), printable(op));
}

Model parse(const std::string& bytes, const std::string& path, const ReadOptions& options) {
  return Reader(path, options).model(bytes);
}

Model read(const std::string& path, const ReadOptions& options) { return parse(file_bytes(path), path, options); }

HostTensor read_tensor(const std::string& path) {
  pb::Tensor t;
  if (!t.ParseFromString(file_bytes(path))) throw invalid(fmt::format("{}: not an ONNX TensorProto", path), damaged);
  return decode(t, path, "");
}

}  // namespace tutti::onnx
