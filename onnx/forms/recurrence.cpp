// The recurrence of an LSTM, fused with the product of its inputs if possible.
#include <algorithm>

#include "onnx/form.h"

namespace tutti::onnx {
namespace {

bool is_zero(const Raising& r, ValueId id) {
  const tutti::Node* n = r.producer(id);
  if (n && n->op->name == "broadcast") id = n->inputs[0];
  const ValueInfo& v = r.graph().info(id);
  return v.role == Role::constant && std::ranges::all_of(v.data, [](std::byte b) { return b == std::byte{0}; });
}

/// The operands of z = x w_ih^T + b, by ONNX's names; w and b without the axis of directions.
struct Inputs {
  std::string x, w, b_ih, b_hh;
};

bool is_bias(const Raising& r, ValueId id, int64_t size) { return r.shape(id) == Shape{size}; }

/// If z is not such a product, its input is z and the weight is an identity matrix.
Inputs inputs_of(Raising& r, ValueId z) {
  int64_t size = r.shape(z)[2];
  Inputs in;
  const tutti::Node* product = r.producer(z);
  if (product && product->op->name == "add" && is_bias(r, product->inputs[1], size)) {
    ValueId b = product->inputs[1];
    const tutti::Node* sum = r.producer(b);
    bool both = sum && sum->op->name == "add" && is_bias(r, sum->inputs[0], size) && is_bias(r, sum->inputs[1], size);
    in.b_ih = both ? r.in(*sum, 0) : r.name(b);
    if (both) in.b_hh = r.in(*sum, 1);
    product = r.producer(product->inputs[0]);
  }
  if (product && product->op->name == "matmul" && !product->attrs.i("ta") && product->attrs.i("tb") &&
      r.shape(product->inputs[0]).size() == 3 && r.shape(product->inputs[1]).size() == 2) {
    in.x = r.in(*product, 0);
    in.w = r.in(*product, 1);
    return in;
  }
  DType t = r.type(z).dtype;
  HostTensor unit{{t, {size, size}}, {}};
  unit.bytes.resize(num_bytes(unit.type));
  for (int64_t k = 0; k < size; ++k) store_element(t, unit.bytes.data(), static_cast<size_t>(k * (size + 1)), 1);
  return {.x = r.name(z), .w = r.constant(unit)};
}

/// Reorders gates from i, f, g, o to ONNX's i, o, f, g.
std::string gates(Raising& r, const std::string& w) {
  Names part = r.add_all("Split", {w}, 4, {{"axis", int64_t{0}}, {"num_outputs", int64_t{4}}});
  return r.add("Concat", {part[0], part[3], part[1], part[2]}, {{"axis", int64_t{0}}});
}

Names lstm(Raising& r, const tutti::Node& n) {
  const TensorType& z = r.type(n.inputs[3]);
  int64_t size = z.shape[2];
  Inputs in = inputs_of(r, n.inputs[3]);
  auto of_direction = [&](const std::string& x) { return r.add("Unsqueeze", {x, r.integers({0})}); };
  auto bias = [&](const std::string& b) { return b.empty() ? r.number(z.dtype, 0, {size}) : gates(r, b); };
  std::string b;
  if (!in.b_ih.empty()) b = of_direction(r.add("Concat", {bias(in.b_ih), bias(in.b_hh)}, {{"axis", int64_t{0}}}));
  bool fresh = is_zero(r, n.inputs[0]) && is_zero(r, n.inputs[1]);
  std::string h0 = fresh ? "" : of_direction(r.in(n, 0)), c0 = fresh ? "" : of_direction(r.in(n, 1));
  Raising::Attributes a = {{"hidden_size", size / 4}};
  if (n.attrs.i("reverse")) a["direction"] = std::string("reverse");
  Names y =
      r.add_all("LSTM", {in.x, of_direction(gates(r, in.w)), of_direction(gates(r, r.in(n, 2))), b, "", h0, c0}, 3, a);
  return {r.add("Squeeze", {y[0], r.integers({1})}), r.add("Squeeze", {y[2], r.integers({0})}), "", ""};
}

bool without_lengths(const Graph&, const tutti::Node& n) { return n.inputs.size() == 4; }

}  // namespace

void add_recurrence(Forms& f) { f.by_op["lstm_recurrence"] = {lstm, without_lengths}; }

}  // namespace tutti::onnx
