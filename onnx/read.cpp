// Reads a model and validates names, order, sizes and types.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/base/printable.h"
#include "core/base/text.h"
#include "onnx/decode.h"
#include "onnx/model.h"

namespace tutti::onnx {
namespace {

const char* const damaged = "export the model again; the file is damaged";

}  // namespace

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
  std::ifstream in(std::filesystem::path(path), std::ios::binary);
  if (!in.read(bytes.data(), static_cast<std::streamsize>(size)))
    throw invalid(fmt::format("{}: cannot be read", path), "check the file's permissions");
  return bytes;
}

namespace {

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
    Body body = graph(m.graph(), &out);
    out.nodes = std::move(body.nodes);
    out.weights = std::move(body.weights);
    out.narrow = std::move(narrow_);
    if (out.outputs.empty()) fail("the graph has no output");
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw invalid(fmt::format("{}: {}", path_, what), damaged); }

  void opsets(const pb::Model& m, Model& out) const {
    for (const pb::OperatorSet& s : m.opset_import())  // of several for one domain the last counts, as in onnxruntime
      out.opsets[s.domain() == "ai.onnx" ? "" : s.domain()] = s.version();
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

  /// Defines a name; returns whether it is new.
  bool define(const std::string& name) {
    if (!known_.insert(name).second) return false;
    defined_.push_back(name);
    return true;
  }

  /// The graph of the model, with the ports that `model` gets, or a subgraph (null), whose names end with it.
  Body graph(const pb::Graph& g, Model* model) {
    size_t outside = defined_.size();
    if (g.sparse_initializer_size() > 0)
      throw Unsupported(fmt::format("{}: sparse initializers are not supported", path_),
                        "store the weights as dense tensors");
    Body out;
    for (const pb::Tensor& t : g.initializer()) {
      std::string name = t.name();
      if (name.empty()) fail("an initializer without a name");
      if (!define(name)) fail(fmt::format("'{}' is defined twice", printable(name)));
      out.weights.emplace(name, decode(t, fmt::format("{}: initializer '{}'", path_, printable(name)), path_));
      note_narrow(name, t);
    }
    for (const pb::Port& p : g.input()) {
      if (out.weights.contains(p.name())) continue;
      if (model)
        model->inputs.push_back(port(p, "input"));
      else
        out.inputs.push_back({.name = p.name()});
      if (!define(p.name())) fail(fmt::format("input '{}' is defined twice", printable(p.name())));
    }
    nodes(g, out);
    for (const pb::Port& p : g.output()) {
      if (model)
        model->outputs.push_back(port(p, "output"));
      else
        out.outputs.push_back({.name = p.name()});
      if (!known_.contains(p.name())) fail(fmt::format("output '{}' is not produced by any node", printable(p.name())));
    }
    for (; !model && defined_.size() > outside; defined_.pop_back()) known_.erase(defined_.back());
    return out;
  }

  void note_narrow(const std::string& name, const pb::Tensor& t) {
    auto type = static_cast<ElementType>(t.data_type());
    if (dtype_of(type) == DType::i32 && type != element_type(DType::i32)) narrow_[name] = type;
  }

  Port port(const pb::Port& p, const char* kind) const {
    if (p.name().empty()) fail(fmt::format("an {} without a name", kind));
    bool output = std::string_view(kind) == "output";  // may be of any type: lowering refuses what it cannot compute
    if (output && !p.type().has_tensor_type()) return {.name = p.name()};
    if (!p.type().has_tensor_type())
      throw Unsupported(fmt::format("{}: {} '{}' is not a tensor", path_, kind, printable(p.name())),
                        "use tensors, not sequences, maps or optionals");
    Port out{.name = p.name(), .type = p.type().tensor_type().elem_type()};
    if (!output && !dtype_of(out.type))
      throw Unsupported(fmt::format("{}: {} '{}' has the unsupported element type {}", path_, kind, printable(p.name()),
                                    element_name(out.type)),
                        "use FLOAT, DOUBLE, FLOAT16, BFLOAT16, INT64, INT32, INT16, INT8, UINT8, UINT32 or BOOL");
    out.has_shape = p.type().tensor_type().has_shape();
    for (const pb::Dimension& d : p.type().tensor_type().shape().dim()) {
      // Some exporters write -1 or, of an input, 0 for an open dimension.
      bool open = !d.has_dim_value() || d.dim_value() == -1 || (d.dim_value() == 0 && !output);
      if (!open && d.dim_value() < 0)
        fail(fmt::format("{} '{}' has the dimension {}, expected 0 or more", kind, printable(p.name()), d.dim_value()));
      out.shape.push_back(open ? -1 : d.dim_value());
      out.symbols.push_back(open && d.dim_param() != "?" ? d.dim_param() : "");  // "?": of no name
    }
    return out;
  }

  void nodes(const pb::Graph& g, Body& out) {
    for (int k : in_order(g)) {
      const pb::Node& n = g.node(k);
      Node node = named(n, k);
      if (node.op.empty()) fail(fmt::format("node {} has no op_type", k));
      for (const std::string& name : node.inputs)
        if (!name.empty() && !known_.contains(name))
          fail(fmt::format("{} reads '{}', which no node, input or initializer defines", node.text(), printable(name)));
      for (const pb::Attribute& a : n.attribute()) {
        if (!node.attributes.emplace(a.name(), attribute(a, node)).second)
          fail(fmt::format("{}: attribute '{}' is defined twice", node.text(), printable(a.name())));
        if (node.op == "Constant" && a.type() == 4 && !node.outputs.empty()) note_narrow(node.outputs[0], a.t());
      }
      for (const std::string& name : node.outputs)
        if (!name.empty() && !define(name))
          fail(fmt::format("{} produces '{}', which is already defined", node.text(), printable(name)));
      out.nodes.push_back(std::move(node));
    }
  }

  static Node named(const pb::Node& n, int k) {
    Node node{.name = n.name(),
              .op = n.op_type(),
              .domain = n.domain() == "ai.onnx" ? "" : n.domain(),
              .place = static_cast<size_t>(k)};
    node.inputs.assign(n.input().begin(), n.input().end());
    node.outputs.assign(n.output().begin(), n.output().end());
    return node;
  }

  /// The names that a node reads, those of its subgraphs included.
  static void add_reads(const pb::Node& n, std::set<std::string>& to) {
    to.insert(n.input().begin(), n.input().end());
    for (const pb::Attribute& a : n.attribute()) {
      if (!a.has_g()) continue;
      for (const pb::Node& inner : a.g().node()) add_reads(inner, to);
      for (const pb::Port& p : a.g().output()) to.insert(p.name());
    }
  }

  /// The nodes with each after those whose results it reads; otherwise in the file's order.
  std::vector<int> in_order(const pb::Graph& g) const {
    std::map<std::string, int> producer;
    for (int k = 0; k < g.node_size(); ++k)
      for (const std::string& name : g.node(k).output())
        if (!name.empty()) producer.emplace(name, k);
    auto count = static_cast<size_t>(g.node_size());
    std::vector<std::set<int>> before(count);
    std::vector<std::vector<int>> after(count);
    for (int k = 0; k < g.node_size(); ++k) {
      std::set<std::string> reads;
      add_reads(g.node(k), reads);
      for (const std::string& name : reads)
        if (auto it = producer.find(name); it != producer.end())
          if (before[static_cast<size_t>(k)].insert(it->second).second)
            after[static_cast<size_t>(it->second)].push_back(k);
    }
    std::set<int> ready;
    for (int k = 0; k < g.node_size(); ++k)
      if (before[static_cast<size_t>(k)].empty()) ready.insert(k);
    std::vector<int> order;
    while (!ready.empty()) {
      int k = *ready.begin();
      ready.erase(ready.begin());
      order.push_back(k);
      for (int next : after[static_cast<size_t>(k)]) {
        before[static_cast<size_t>(next)].erase(k);
        if (before[static_cast<size_t>(next)].empty()) ready.insert(next);
      }
    }
    if (order.size() < count) fail_of_cycle(g, before);
    return order;
  }

  /// `before`: the nodes that each node still waits for.
  [[noreturn]] void fail_of_cycle(const pb::Graph& g, const std::vector<std::set<int>>& before) const {
    int k = 0;
    while (before[static_cast<size_t>(k)].empty()) ++k;
    std::vector<int> path;
    while (std::ranges::find(path, k) == path.end()) {
      path.push_back(k);
      k = *before[static_cast<size_t>(k)].begin();
    }
    std::vector<std::string> names;
    for (auto it = std::ranges::find(path, k); it != path.end(); ++it) names.push_back(named(g.node(*it), *it).text());
    if (names.size() == 1) fail(fmt::format("the graph has a cycle: {}, which reads its own result", names[0]));
    fail(fmt::format("the graph has a cycle: {}", first_of(names, ", which reads a result of ")));
  }

  Attribute attribute(const pb::Attribute& a, const Node& node) {
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
      case 5: return Subgraph{std::make_shared<const Body>(graph(a.g(), nullptr))};
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
  std::set<std::string> known_;       // names defined so far
  std::vector<std::string> defined_;  // the same in order
  NarrowTypes narrow_;
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
