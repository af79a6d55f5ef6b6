#include "train/parity/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/base/philox.h"
#include "core/base/status.h"
#include "graph/samples.h"
#include "train/parity/compare.h"

namespace tutti::parity {
namespace {

constexpr int runs = 2;

/// A case with the reference's answers to both runs' data.
struct Prepared {
  CaseId id;
  Graph graph;
  std::vector<Tensors> inputs;
  std::vector<std::vector<Tensor>> truth;
};

Prepared prepare(const CaseId& id, const std::string& prefix, uint64_t seed) {
  Prepared p{id, graph_of(id, prefix), {}, {}};
  for (int r = 0; r < runs; ++r) {
    p.inputs.push_back(inputs_of(id, p.graph, seed + static_cast<uint64_t>(r)));
    p.truth.push_back(truth_of(p.graph, p.inputs.back()));
  }
  return p;
}

/// Every float element times 1 + h or 1 - h, drawn by coin.
void shake(Tensor& t, double h, uint32_t trial, uint32_t stream) {
  if (!is_float(t.type.dtype)) return;
  for (size_t i = 0; i < t.at.size(); ++i) t.at[i] *= 1 + (random_block(0, trial, stream, i / 4)[i % 4] & 1 ? h : -h);
}

/// State k of a graph, with all feeds and all results of nodes shaken by h (0: as they are).
Tensor shaken(const Graph& g, const Tensors& inputs, size_t k, double h, uint32_t trial) {
  std::vector<Tensor> values(g.values().size());
  for (ValueId v = 0; v < values.size(); ++v) {
    const ValueInfo& info = g.info(v);
    if (info.role == Role::constant) values[v] = tensor_from(info.type, info.data.data());
    if (info.role == Role::feed) shake(values[v] = inputs.at(info.name), h, trial, v);
  }
  for (const Node& n : g.nodes()) {
    std::vector<Tensor> in;
    for (ValueId v : n.inputs) in.push_back(values[v]);
    std::vector<Tensor> out = evaluate(*n.op, in, n.attrs);
    for (size_t r = 0; r < out.size(); ++r) shake(values[n.results[r]] = std::move(out[r]), h, trial, n.results[r]);
  }
  return values[g.states()[k].after];
}

/// The root mean square change of result k per unit of relative change of inputs and of everything computed on the way,
/// in float64: what roundings are worth in this formula at this point.
double conditioning(const CaseId& id, const Tensors& inputs, size_t k) {
  constexpr double h = 0x1p-24;
  constexpr uint32_t trials = 3;
  Graph g;
  try {
    g = graph_of(id, {}, DType::f64);
  } catch (const Error&) {
    return 0;  // not for these dtypes
  }
  Tensors wide;
  for (const auto& [name, t] : inputs) {
    Tensor w = t;
    if (is_float(w.type.dtype)) w.type.dtype = DType::f64;
    wide.emplace(name, std::move(w));
  }
  Tensor base = shaken(g, wide, k, 0, 0);
  double square = 0;
  for (uint32_t trial = 0; trial < trials; ++trial) {
    Tensor y = shaken(g, wide, k, h, trial);
    for (size_t i = 0; i < y.at.size(); ++i) {
      double d = (y.at[i] - base.at[i]) / h;
      if (std::isfinite(d)) square += d * d;
    }
  }
  return base.at.empty() ? 0 : std::sqrt(square / trials / static_cast<double>(base.at.size()));
}

/// Only these dtypes may be missing on a device; everything else must run.
bool may_decline(const Graph& g) {
  return std::any_of(g.values().begin(), g.values().end(), [](const ValueInfo& v) {
    DType t = v.type.dtype;
    return t == DType::f64 || t == DType::i64 || t == DType::f16 || t == DType::bf16;
  });
}

CaseResult run_case(Session& session, const Prepared& p, const SuiteOptions& options, size_t prefix) {
  CaseResult result{.id = p.id};
  std::unique_ptr<DeviceProgram> program;
  try {
    program = std::make_unique<DeviceProgram>(session, p.graph);
  } catch (const Error& e) {
    if (e.code != Code::declined) throw;
    result.outcome = may_decline(p.graph) ? Outcome::unsupported : Outcome::fail;
    result.why = e.what();
    return result;
  }
  std::vector<Tensor> before;
  for (int r = 0; r < runs; ++r) {
    Tensors states = program->run(p.inputs[static_cast<size_t>(r)]);
    std::vector<Tensor> got;
    for (const State& s : p.graph.states()) got.push_back(std::move(states.at(s.name)));
    if (options.tamper) options.tamper(p.id, r, got, before);
    const std::vector<Tensor>& truth = p.truth[static_cast<size_t>(r)];
    for (size_t k = 0; k < truth.size(); ++k) {
      std::string name = p.graph.states()[k].name.substr(prefix);
      Bound bound = bound_of(*p.id.op, p.graph, truth[k].type.dtype, name[0] == 'd');
      Difference d =
          compare(got[k], truth[k], bound, [&] { return conditioning(p.id, p.inputs[static_cast<size_t>(r)], k); });
      result.share = std::max(result.share, d.share);
      result.error = std::max(result.error, d.relative);
      if (d.ok) continue;
      result.outcome = Outcome::fail;
      if (result.why.empty()) result.why = fmt::format("{}{}: {}", name, r ? ", second run" : "", d.text);
    }
    before = std::move(got);
  }
  return result;
}

}  // namespace

std::string_view name(Outcome outcome) {
  switch (outcome) {
    case Outcome::pass: return "pass";
    case Outcome::fail: return "fail";
    default: return "unsupported";
  }
}

size_t DeviceResult::count(Outcome outcome, const OpDef* op) const {
  return static_cast<size_t>(std::count_if(
      cases.begin(), cases.end(), [&](const CaseResult& c) { return c.outcome == outcome && (!op || c.id.op == op); }));
}

std::string DeviceResult::replay(const CaseResult& c, uint64_t seed) const {
  return fmt::format("tutti parity --device {} --case {} --seed {}", device.id, c.id.text(), seed);
}

size_t Report::count(Outcome outcome) const {
  size_t n = 0;
  for (const DeviceResult& d : devices) n += d.count(outcome);
  return n;
}

Report run(const std::vector<Device>& devices, const std::vector<CaseId>& cases, const SuiteOptions& options) {
  Report report{options.seed, {}};
  for (const Device& d : devices) report.devices.push_back({d, {}});
  if (devices.empty()) return report;
  // One session per op and device: many programs share it, as in training.
  std::vector<std::unique_ptr<Session>> sessions(devices.size());
  const OpDef* op = nullptr;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (cases[i].op != op) {
      op = cases[i].op;
      if (options.watch) options.watch(*op);
      for (auto& s : sessions) s.reset();
    }
    std::string prefix = fmt::format("{}.", i);  // states of one session need names of their own
    Prepared p = prepare(cases[i], prefix, options.seed);
    for (size_t d = 0; d < devices.size(); ++d) {
      CaseResult result{.id = cases[i]};
      try {
        if (!sessions[d]) sessions[d] = std::make_unique<Session>(devices[d]);
        result = run_case(*sessions[d], p, options, prefix.size());
      } catch (const std::exception& e) {
        result.outcome = Outcome::fail;
        result.why = e.what();
        sessions[d].reset();  // what comes next starts clean
      }
      report.devices[d].cases.push_back(std::move(result));
    }
  }
  return report;
}

}  // namespace tutti::parity
