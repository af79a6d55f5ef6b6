#include "verify/bisect/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/philox.h"
#include "core/base/status.h"
#include "verify/parity/conditioning.h"

namespace tutti::bisect {
namespace {

using parity::compare;
using parity::conditioning;
using parity::DeviceProgram;
using parity::Difference;
using parity::reduction_length;
using parity::widened;

/// Number of terms summed for one result element of a product: exact for matmul, estimated up to the window size for
/// convolutions and their gradients (weight gradients sum over the whole batch).
double product_length(const Graph& g, const Node& n) {
  if (n.op->elementwise() || n.inputs.size() != 2) return 1;
  auto size = [&](ValueId v) { return static_cast<double>(num_elements(g.info(v).type.shape)); };
  return std::sqrt(size(n.inputs[0]) * size(n.inputs[1]) / std::max(1.0, size(n.results[0])));
}

bool changes(const State& s) { return s.after != s.before; }

double rms(const Tensor& t) {
  double sum = 0, n = 0;
  for (double x : t.at)
    if (std::isfinite(x)) sum += x * x, ++n;
  return n == 0 ? 0 : std::sqrt(sum / n);
}

/// Perturbs every element by `share` of its own and of the tensor's magnitude, like rounding in preceding nodes.
void move(Tensor& t, double share, uint32_t trial, uint32_t stream) {
  double size = rms(t);
  for (size_t i = 0; i < t.at.size(); ++i)
    t.at[i] += (random_block(0, trial, stream, i / 4)[i % 4] & 1 ? share : -share) * (std::abs(t.at[i]) + size);
}

/// The widened graph's results with every inner value perturbed within the bounds of the nodes of `g`.
Tensors moved(const Graph& g, const Graph& wide, const Tensors& inputs, uint32_t trial) {
  Readers readers = readers_of(g);
  std::vector<Tensor> values(wide.values().size());
  for (ValueId v = 0; v < values.size(); ++v) {
    const ValueInfo& info = wide.info(v);
    if (info.role == Role::constant) values[v] = tensor_from(info.type, info.data.data());
    if (info.role == Role::feed || info.role == Role::state) values[v] = inputs.at(info.name);
  }
  for (size_t k = 0; k < wide.nodes().size(); ++k) {
    const Node& n = wide.nodes()[k];
    std::vector<Tensor> in;
    for (ValueId v : n.inputs) in.push_back(values[v]);
    std::vector<Tensor> out = evaluate(*n.op, in, n.attrs);
    for (size_t r = 0; r < out.size(); ++r) {
      ValueId own = g.nodes()[k].results[r];
      DType type = g.info(own).type.dtype;
      if (is_float(type) && !readers[own].empty()) move(out[r], bound_of(g, type).relative, trial, own);
      values[n.results[r]] = std::move(out[r]);
    }
  }
  Tensors results;
  for (const State& s : wide.states())
    if (changes(s)) results.emplace(s.name, std::move(values[s.after]));
  return results;
}

/// Measures lazily how much rounding between nodes can change each result.
class Wobble {
 public:
  Wobble(const Graph& g, const Tensors& inputs) : g_(g), inputs_(inputs) {}

  /// `got`, with elements replaced by the truth if their error is at most twice the effect of rounding.
  Tensor without(const std::string& result, const Tensor& got, const Tensor& truth) {
    if (trials_.empty()) run();
    Tensor out = got;
    for (size_t i = 0; i < out.at.size(); ++i) {
      double most = 0;
      for (const Tensors& t : trials_) most = std::max(most, std::abs(t.at(result).at[i] - truth.at[i]));
      if (std::abs(out.at[i] - truth.at[i]) <= 2 * most) out.at[i] = truth.at[i];
    }
    return out;
  }

 private:
  void run() try {
    Graph wide = widened(g_);
    Tensors inputs = widened(inputs_);
    for (uint32_t trial = 0; trial < 8; ++trial) trials_.push_back(moved(g_, wide, inputs, trial));
  } catch (const Error&) {  // an op does not accept f64: no tolerance
  }
  const Graph& g_;
  const Tensors& inputs_;
  std::vector<Tensors> trials_;
};

double conditioning_of(const Graph& g, const Tensors& inputs, const std::string& result) try {
  Graph wide = widened(g);
  for (size_t k = 0; k < wide.states().size(); ++k)
    if (wide.states()[k].name == result) return conditioning(wide, widened(inputs), k);
  return 0;
} catch (const Error&) {
  return 0;  // an op does not accept f64
}

}  // namespace

std::string value_name(ValueId v) { return fmt::format("%{}", v); }

Readers readers_of(const Graph& g) {
  Readers readers(g.values().size());
  for (uint32_t k = 0; k < g.nodes().size(); ++k)
    for (ValueId v : g.nodes()[k].inputs) readers[v].push_back(k);
  return readers;
}

bool leaves(const Graph& g, const Readers& readers, Span span, ValueId v) {
  return std::ranges::any_of(readers[v], [&](uint32_t k) { return !span.holds(k); }) ||
         std::ranges::any_of(g.states(), [&](const State& s) { return s.after == v; });
}

std::string result_name(const Graph& g, ValueId v) {
  for (const State& s : g.states())
    if (s.after == v) return s.name;
  return value_name(v);
}

Graph cut(const Graph& g, const Readers& readers, Span span) {
  Graph out;
  Values map(g.values().size());
  auto value = [&](ValueId v) {
    const ValueInfo& info = g.info(v);
    if (map[v]) return map[v];
    switch (info.role) {
      case Role::constant: return map[v] = out.constant(info.type, info.data);
      case Role::feed: return map[v] = out.feed(info.name, info.type);
      case Role::state: return map[v] = out.state(info.name, info.type, g.find_state(info.name)->role);
      default: return map[v] = out.feed(value_name(v), info.type);
    }
  };
  for (uint32_t k = span.first; k < span.first + span.count; ++k) {
    const Node& n = g.nodes()[k];
    Values in;
    for (ValueId v : n.inputs) in.push_back(value(v));
    out.set_origin(n);
    Values results = out.add(*n.op, in, n.attrs);
    for (size_t r = 0; r < results.size(); ++r) map[n.results[r]] = results[r];
  }
  out.set_origin({});
  for (uint32_t k = span.first; k < span.first + span.count; ++k)
    for (ValueId v : g.nodes()[k].results)
      if (leaves(g, readers, span, v)) out.set_state(result_name(g, v), map[v]);
  return out;
}

Tensors truths_of(Graph& g, const Tensors& inputs) {
  Values outputs;
  std::vector<std::string> names;
  for (const State& s : g.states())
    if (changes(s)) {
      outputs.push_back(g.value(s.after));
      names.push_back(s.name);
    }
  std::vector<Tensor> values = evaluate(g, inputs, outputs);
  Tensors truth;
  for (size_t k = 0; k < names.size(); ++k) truth.emplace(names[k], std::move(values[k]));
  return truth;
}

Bound bound_of(const Graph& g, DType type) {
  Bound most;
  double known = reduction_length(g), length = known;
  for (const Node& n : g.nodes()) {
    Bound b = bound_of(*n.op, g, type, false);
    most.relative = std::max(most.relative, b.relative);
    most.absolute = std::max(most.absolute, b.absolute);
    length = std::max(length, product_length(g, n));
  }
  most.relative *= std::sqrt(static_cast<double>(std::max<size_t>(1, g.nodes().size())));
  most.relative *= (1 + std::sqrt(length)) / (1 + std::sqrt(known));
  return most;
}

Judgement judge(const Graph& g, const Tensors& inputs, const Tensors& truth, const Tensors& got) {
  Judgement worst;
  Wobble wobble(g, inputs);
  for (const State& s : g.states()) {
    if (!changes(s)) continue;
    const Tensor &have = got.at(s.name), &want = truth.at(s.name);
    Bound bound = bound_of(g, want.type.dtype);
    auto conditions = [&] { return conditioning_of(g, inputs, s.name); };
    Difference d = compare(have, want, bound, conditions);
    if (!d.ok && g.nodes().size() > 1) d = compare(wobble.without(s.name, have, want), want, bound, conditions);
    bool worse = worst.result.empty() || (worst.ok && !d.ok) || (worst.ok == d.ok && d.share > worst.share);
    if (!worse) continue;
    worst = {d.ok, s.name, d.at, 0, 0, d.share, d.text};
    if (d.at < want.at.size()) worst.got = have.at[d.at], worst.want = want.at[d.at];
  }
  return worst;
}

Shape place_of(const Shape& shape, size_t at) {
  Shape place(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    auto size = static_cast<size_t>(std::max<int64_t>(1, shape[d]));
    place[d] = static_cast<int64_t>(at % size);
    at /= size;
  }
  return place;
}

Tensors run_alone(const Device& device, const Graph& g, const Tensors& inputs) {
  Session session(device);
  DeviceProgram program(session, g);
  return program.run(inputs);
}

}  // namespace tutti::bisect
