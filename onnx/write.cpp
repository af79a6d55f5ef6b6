#include "onnx/write.h"

#include <fmt/format.h>

#include "data/files/whole_file.h"
#include "onnx/decode.h"
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

void expect_room(uint64_t bytes, const std::string& path) {
  constexpr uint64_t most = 0x7fffffff;
  if (bytes > most)
    throw invalid(fmt::format("{}: the model has {} bytes; an ONNX file can have at most 2 GiB", path, bytes),
                  "export a smaller model, or keep it as safetensors (tutti train --merged)");
}

std::string serialized(const pb::Model& m, const std::string& path) {
  expect_room(m.ByteSizeLong(), path);
  return m.SerializeAsString();
}

template <class Stored>
std::string narrowed_bytes(const HostTensor& t) {
  std::string bytes;
  for (int32_t x : t.as<int32_t>()) {
    auto y = static_cast<Stored>(x);
    bytes.append(reinterpret_cast<const char*>(&y), sizeof y);
  }
  return bytes;
}

/// Gives an initializer another value of its shape and type, within the file.
void fill(pb::Tensor& to, const HostTensor& t) {
  to.clear_int32_data();
  to.clear_float_data();
  to.clear_double_data();
  to.clear_int64_data();
  to.clear_uint64_data();
  to.clear_external_data();
  to.clear_data_location();
  const std::string type = element_name(to.data_type());  // INT8 and INT16 are i32 in memory
  if (type == "INT8")
    to.set_raw_data(narrowed_bytes<int8_t>(t));
  else if (type == "INT16")
    to.set_raw_data(narrowed_bytes<int16_t>(t));
  else
    to.set_raw_data(t.bytes.data(), t.bytes.size());
}

}  // namespace

std::string bytes_of(const Model& model, const std::string& path) {
  uint64_t bytes = 0;
  for (const auto& [name, t] : model.weights) bytes += t.bytes.size();
  expect_room(bytes, path);  // before memory is allocated for them
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
  return serialized(m, path);
}

std::string with_weights(const std::string& original, const HostTensors& weights, const std::string& path) {
  pb::Model m;
  if (!m.ParseFromString(file_bytes(original)))
    throw invalid(original + ": is not an ONNX model, or the file is truncated", "export it again");
  uint64_t filled = 0;
  for (pb::Tensor& t : *m.mutable_graph()->mutable_initializer()) {
    auto it = weights.find(t.name());
    if (it == weights.end() && t.data_location() != 1) continue;
    HostTensor value = it == weights.end() ? decode(t, original, original) : it->second;
    filled += value.bytes.size();
    expect_room(filled, path);
    fill(t, value);
  }
  return serialized(m, path);
}

void write(const std::string& path, const Model& model) { write_whole_file(path, bytes_of(model, path)); }

}  // namespace tutti::onnx
