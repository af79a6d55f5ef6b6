#include "onnx/write.h"

#include <fmt/format.h>

#include "data/files/whole_file.h"
#include "onnx/format.pb.h"

namespace tutti::onnx {
namespace {

constexpr int64_t ir_version = 9;  // the IR version released with opset 20

void set(pb::Tensor& to, const HostTensor& t) {
  for (int64_t d : t.type.shape) to.add_dims(d);
  to.set_data_type(element_type(t.type.dtype));
  to.set_raw_data(t.bytes.data(), t.bytes.size());
}

void set(pb::Port& to, const Port& p) {
  to.set_name(p.name);
  pb::TensorKind& kind = *to.mutable_type()->mutable_tensor_type();
  kind.set_elem_type(p.type);
  if (!p.has_shape) return;
  kind.mutable_shape();  // scalars have a shape, too
  for (size_t k = 0; k < p.shape.size(); ++k) {
    pb::Dimension& d = *kind.mutable_shape()->add_dim();
    if (p.shape[k] >= 0)
      d.set_dim_value(p.shape[k]);
    else if (!p.symbols[k].empty())
      d.set_dim_param(p.symbols[k]);
  }
}

/// Sets an attribute's value and type code.
struct SetAttribute {
  pb::Attribute& to;
  void operator()(double x) const {
    to.set_type(1);
    to.set_f(static_cast<float>(x));
  }
  void operator()(int64_t x) const {
    to.set_type(2);
    to.set_i(x);
  }
  void operator()(const std::string& x) const {
    to.set_type(3);
    to.set_s(x);
  }
  void operator()(const HostTensor& x) const {
    to.set_type(4);
    set(*to.mutable_t(), x);
  }
  void operator()(const Reals& all) const {
    to.set_type(6);
    for (double x : all) to.add_floats(static_cast<float>(x));
  }
  void operator()(const Ints& all) const {
    to.set_type(7);
    for (int64_t x : all) to.add_ints(x);
  }
  void operator()(const std::vector<std::string>& all) const {
    to.set_type(8);
    for (const std::string& x : all) to.add_strings(x);
  }
  void operator()(const Subgraph&) const {
    throw Error(Code::internal, "an ONNX node with a subgraph cannot be written");
  }
};

void set(pb::Node& to, const Node& n) {
  to.set_name(n.name);
  to.set_op_type(n.op);
  if (!n.domain.empty()) to.set_domain(n.domain);
  for (const std::string& name : n.inputs) to.add_input(name);
  for (const std::string& name : n.outputs) to.add_output(name);
  for (const auto& [name, value] : n.attributes) {
    pb::Attribute& a = *to.add_attribute();
    a.set_name(name);
    std::visit(SetAttribute{a}, value);
  }
}

}  // namespace

std::string bytes_of(const Model& model, const std::string& path) {
  constexpr uint64_t most = 0x7fffffff;
  uint64_t bytes = 0;
  for (const auto& [name, t] : model.weights) bytes += t.bytes.size();
  auto expect_room = [&] {
    if (bytes > most)
      throw invalid(fmt::format("{}: the model has {} bytes; an ONNX file can have at most 2 GiB", path, bytes),
                    "export a smaller model, or keep it as safetensors (tutti train --merged)");
  };
  expect_room();  // before memory is allocated for them
  pb::Model m;
  m.set_ir_version(ir_version);
  m.set_producer_name("tutti");
  m.set_producer_version(TUTTI_VERSION);
  m.add_opset_import()->set_version(model.opset);
  pb::Graph& g = *m.mutable_graph();
  g.set_name(model.name.empty() ? "model" : model.name);
  for (const auto& [name, t] : model.weights) {
    pb::Tensor& to = *g.add_initializer();
    to.set_name(name);
    set(to, t);
  }
  for (const Port& p : model.inputs) set(*g.add_input(), p);
  for (const Port& p : model.outputs) set(*g.add_output(), p);
  for (const Node& n : model.nodes) set(*g.add_node(), n);
  bytes = m.ByteSizeLong();
  expect_room();
  return m.SerializeAsString();
}

void write(const std::string& path, const Model& model) { write_whole_file(path, bytes_of(model, path)); }

}  // namespace tutti::onnx
