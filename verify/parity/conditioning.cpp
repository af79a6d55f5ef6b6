#include "verify/parity/conditioning.h"

#include <cmath>

#include "core/base/philox.h"
#include "core/base/status.h"

namespace tutti::parity {
namespace {

/// Multiplies every float element randomly by 1 + h or 1 - h.
void shake(Tensor& t, double h, uint32_t trial, uint32_t stream) {
  if (!is_float(t.type.dtype)) return;
  for (size_t i = 0; i < t.at.size(); ++i) t.at[i] *= 1 + (random_block(0, trial, stream, i / 4)[i % 4] & 1 ? h : -h);
}

/// State k of a graph, with all inputs and node results perturbed by h (0: unperturbed).
Tensor shaken(const Graph& g, const Tensors& inputs, size_t k, double h, uint32_t trial) {
  std::vector<Tensor> values(g.values().size());
  for (ValueId v = 0; v < values.size(); ++v) {
    const ValueInfo& info = g.info(v);
    if (info.role == Role::constant) values[v] = tensor_from(info.type, info.data.data());
    if (info.role == Role::feed || info.role == Role::state) shake(values[v] = inputs.at(info.name), h, trial, v);
  }
  for (const Node& n : g.nodes()) {
    std::vector<Tensor> in;
    for (ValueId v : n.inputs) in.push_back(values[v]);
    std::vector<Tensor> out = evaluate(*n.op, in, n.attrs);
    for (size_t r = 0; r < out.size(); ++r) shake(values[n.results[r]] = std::move(out[r]), h, trial, n.results[r]);
  }
  return values[g.states()[k].after];
}

/// The root mean square change of state k per unit of relative change, measured with perturbations of h.
double change(const Graph& g, const Tensors& inputs, const Tensor& base, size_t k, double h) {
  constexpr uint32_t trials = 3;
  double square = 0;
  for (uint32_t trial = 0; trial < trials; ++trial) {
    Tensor y = shaken(g, inputs, k, h, trial);
    for (size_t i = 0; i < y.at.size(); ++i) {
      double d = (y.at[i] - base.at[i]) / h;
      if (std::isfinite(d)) square += d * d;
    }
  }
  return base.at.empty() ? 0 : std::sqrt(square / trials / static_cast<double>(base.at.size()));
}

DType wide_type(DType t) { return is_float(t) ? DType::f64 : t; }

}  // namespace

Graph widened(const Graph& g) {
  Graph wide;
  Values map(g.values().size());
  for (ValueId v = 0; v < map.size(); ++v) {
    const ValueInfo& info = g.info(v);
    TensorType type{wide_type(info.type.dtype), info.type.shape};
    if (info.role == Role::feed) map[v] = wide.feed(info.name, type);
    if (info.role == Role::state) map[v] = wide.state(info.name, type, g.find_state(info.name)->role);
    if (info.role != Role::constant) continue;
    Tensor t = tensor_from(info.type, info.data.data());
    t.type = type;
    std::vector<std::byte> bytes(num_bytes(type));
    store_tensor(t, bytes.data());
    map[v] = wide.constant(type, std::move(bytes));
  }
  for (const Node& n : g.nodes()) {
    Attrs attrs = n.attrs;
    for (const auto& [name, value] : n.attrs)
      if (const auto* text = std::get_if<std::string>(&value))
        if (std::optional<DType> t = parse_dtype(*text); t && is_float(*t)) attrs.set(name, "f64");
    Values in;
    for (ValueId v : n.inputs) in.push_back(map[v]);
    Values out = wide.add(*n.op, in, attrs);
    for (size_t r = 0; r < out.size(); ++r) map[n.results[r]] = out[r];
  }
  for (const State& s : g.states())
    if (s.after != s.before) wide.set_state(s.name, map[s.after], s.role);
  return wide;
}

Tensors widened(const Tensors& tensors) {
  Tensors wide = tensors;
  for (auto& [name, t] : wide) t.type.dtype = wide_type(t.type.dtype);
  return wide;
}

double conditioning(const Graph& wide, const Tensors& inputs, size_t k) {
  Tensor base = shaken(wide, inputs, k, 0, 0);
  double fine = change(wide, inputs, base, k, 0x1p-24), coarse = change(wide, inputs, base, k, 0x1p-16);
  // For discontinuous results (the mask in the gradient of a maximum), smaller perturbations do not give smaller
  // changes.
  return fine > 4 * coarse ? 0 : fine;
}

double conditioning(const CaseId& id, const Tensors& inputs, size_t k, const std::string& prefix) {
  Graph g;
  try {
    g = graph_of(id, prefix, DType::f64);
  } catch (const Error&) {
    return 0;  // unsupported for these dtypes
  }
  return conditioning(g, widened(inputs), k);
}

}  // namespace tutti::parity
