// Normalizations. Batch normalization in evaluation is recognized from its composition of ops.
#include <algorithm>

#include "onnx/form.h"

namespace tutti::onnx {
namespace {

/// Whether all inputs have the dtype of x.
bool one_dtype(const Graph& g, const tutti::Node& n) {
  return std::ranges::all_of(n.inputs,
                             [&](ValueId id) { return g.info(id).type.dtype == g.info(n.inputs[0]).type.dtype; });
}

Names layer(Raising& r, const tutti::Node& n) {
  const Ints& shape = n.attrs.ints("normalized_shape");
  Names in = {r.in(n, 0), n.inputs.size() > 1 ? r.in(n, 1) : r.number(r.type(n.inputs[0]).dtype, 1, shape)};
  if (n.inputs.size() > 2) in.push_back(r.in(n, 2));
  return r.add_all("LayerNormalization", in, 3,
                   {{"axis", -static_cast<int64_t>(shape.size())}, {"epsilon", n.attrs.f("eps")}});
}

/// Group normalization by InstanceNormalization, with groups as channels: before opset 21 GroupNormalization has one
/// weight per group.
Names group(Raising& r, const tutti::Node& n) {
  int64_t groups = n.attrs.i("groups");
  const TensorType& x = r.type(n.inputs[0]);
  int64_t inner = num_elements(std::span(x.shape).subspan(1)) / groups;
  std::string y = r.add("Reshape", {r.in(n, 0), r.integers({x.shape[0], groups, inner})});
  y = r.add("InstanceNormalization", {y, r.number(x.dtype, 1, {groups}), r.number(x.dtype, 0, {groups})},
            {{"epsilon", n.attrs.f("eps")}});
  y = r.add("Reshape", {y, r.integers(x.shape)});
  Ints channels(x.shape.size() - 1, 1);
  channels[0] = x.shape[1];
  auto per_channel = [&](size_t k) { return r.add("Reshape", {r.in(n, k), r.integers(channels)}); };
  if (n.inputs.size() > 1) y = r.add("Mul", {y, per_channel(1)});
  if (n.inputs.size() > 2) y = r.add("Add", {y, per_channel(2)});
  return {y};
}

/// The [C] value of a per-channel operand for an x of that rank: itself for matrices, else reshaped to [C, 1, …]. None
/// if it has another shape.
ValueId per_channel(const Raising& r, ValueId id, const Shape& x) {
  Shape wanted(x.size() - 1, 1);
  wanted[0] = x[1];
  if (r.shape(id) != wanted) return no_id;
  if (wanted.size() == 1) return id;
  const tutti::Node* n = r.producer(id);
  return n && n->op->name == "reshape" && r.shape(n->inputs[0]) == Shape{x[1]} ? n->inputs[0] : no_id;
}

/// (x - mean) * (rsqrt(variance + eps) * weight) + bias, as composed by batch_norm_eval.
std::optional<std::string> batch(Raising& r, const tutti::Node& add) {
  const tutti::Node* product = r.only_for(add.inputs[0], "mul");
  const tutti::Node* centred = product ? r.only_for(product->inputs[0], "sub") : nullptr;
  const tutti::Node* scale = product ? r.producer(product->inputs[1]) : nullptr;
  const tutti::Node* inverse = scale && scale->op->name == "mul" ? r.producer(scale->inputs[0]) : nullptr;
  const tutti::Node* sum = inverse && inverse->op->name == "rsqrt" ? r.producer(inverse->inputs[0]) : nullptr;
  if (!centred || !sum || sum->op->name != "add") return std::nullopt;
  ValueId x = centred->inputs[0];
  const Shape& shape = r.shape(x);
  const ValueInfo& eps = r.graph().info(sum->inputs[1]);
  if (shape.size() < 2 || eps.role != Role::constant || num_elements(eps.type.shape) != 1) return std::nullopt;
  Names in = {r.name(x)};
  for (ValueId id : {scale->inputs[1], add.inputs[1], centred->inputs[1], sum->inputs[0]}) {
    ValueId channel = per_channel(r, id, shape);
    if (channel == no_id) return std::nullopt;
    in.push_back(r.name(channel));
  }
  return r.add("BatchNormalization", in, {{"epsilon", load_element(eps.type.dtype, eps.data.data(), 0)}});
}

}  // namespace

void add_norms(Forms& f) {
  f.by_op["layer_norm"] = {layer, one_dtype};
  f.by_op["group_norm"] = {group, one_dtype};
  f.fusions.emplace("add", batch);
}

}  // namespace tutti::onnx
