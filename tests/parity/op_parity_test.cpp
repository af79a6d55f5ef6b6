// Every op record's samples on every device: forward, each input's gradient alone and all together, against the float64
// reference. Elements may differ by a few roundings that grow with the length of the reductions; integers, bool and
// exact ops not at all.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "core/base/status.h"
#include "graph/ops.h"
#include "graph/passes/autodiff.h"
#include "graph/samples.h"
#include "tests/support/device_run.h"

namespace tutti {
namespace {

constexpr uint64_t seed = 20240607;

double epsilon(DType t) {
  switch (t) {
    case DType::f16: return 0x1p-11;
    case DType::bf16: return 0x1p-8;
    case DType::f64: return 0x1p-53;
    default: return 0x1p-24;
  }
}

/// The longest sum that one result element may be: elements read per element written, at most.
double reduction_length(const Graph& g) {
  double longest = 1;
  for (const Node& n : g.nodes()) {
    double in = 0, out = 1;
    for (ValueId i : n.inputs) in = std::max(in, static_cast<double>(num_elements(g.info(i).type.shape)));
    for (ValueId r : n.results) out = std::max(out, static_cast<double>(num_elements(g.info(r).type.shape)));
    longest =
        std::max(longest, std::max(in / out, n.inputs.empty()
                                                 ? 1
                                                 : static_cast<double>(g.info(n.inputs[0]).type.shape.empty()
                                                                           ? 1
                                                                           : g.info(n.inputs[0]).type.shape.back())));
  }
  return longest;
}

struct Case {
  Graph graph;
  std::map<std::string, Tensor> inputs;
};

/// The op over feeds; results are outputs "y0", …; with `wrt`, gradients by random cotangents are outputs "d0", ….
Case build(const OpDef& op, size_t which, const std::vector<size_t>& wrt) {
  const Sample& sample = op.samples[which];
  Case c;
  std::vector<Tensor> drawn = draw(op, sample, which, seed);
  Values in;
  for (size_t i = 0; i < drawn.size(); ++i) {
    in.push_back(c.graph.feed(fmt::format("x{}", i), drawn[i].type));
    c.inputs.emplace(fmt::format("x{}", i), drawn[i]);
  }
  Values out = c.graph.add(op, in, sample.attrs), results, seeds, inputs;
  for (size_t k = 0; k < out.size(); ++k) {
    c.graph.set_state(fmt::format("y{}", k), out[k]);
    if (wrt.empty() || !is_float(out[k].dtype())) continue;
    Tensor d = draw_cotangent(op, out[k].type(), which, k, seed);
    results.push_back(out[k]);
    seeds.push_back(c.graph.feed(fmt::format("c{}", k), d.type));
    c.inputs.emplace(fmt::format("c{}", k), std::move(d));
  }
  for (size_t i : wrt) inputs.push_back(in[i]);
  Values d = gradients(results, seeds, inputs);
  for (size_t i = 0; i < d.size(); ++i)
    if (d[i]) c.graph.set_state(fmt::format("d{}", wrt[i]), d[i]);
  return c;
}

bool differentiable(const OpDef& op, const Sample& sample) {
  Types types = sample_types(sample);
  return (op.vjp || op.expr || op.decompose) && !op.exact &&
         std::any_of(types.begin(), types.end(), [](const TensorType& t) { return is_float(t.dtype); });
}

/// Only what holds an f64 or i64 value may be unsupported by a device; everything else must pass.
bool wide(const Graph& g) {
  return std::any_of(g.values().begin(), g.values().end(),
                     [](const ValueInfo& v) { return v.type.dtype == DType::f64 || v.type.dtype == DType::i64; });
}

class OpParity : public testing::TestWithParam<std::string> {};

TEST_P(OpParity, MatchesTheReference) {
  std::vector<Device> devices = test::devices_under_test();
  if (devices.empty()) GTEST_SKIP() << "no device besides the reference";
  const OpDef& op = *find_op(GetParam());
  std::string unsupported;
  for (const Device& device : devices) {
    for (size_t which = 0; which < op.samples.size(); ++which) {
      std::vector<std::vector<size_t>> subsets = {{}};
      if (differentiable(op, op.samples[which])) {
        std::vector<size_t> all;
        Types types = sample_types(op.samples[which]);
        for (size_t i = 0; i < types.size(); ++i)
          if (is_float(types[i].dtype)) all.push_back(i);
        if (all.size() > 1)
          for (size_t i : all) subsets.push_back({i});
        subsets.push_back(all);
      }
      for (const auto& wrt : subsets) {
        Case c = build(op, which, wrt);
        Values outputs;
        for (const State& s : c.graph.states()) outputs.push_back(c.graph.value(s.after));
        std::vector<Tensor> truth = evaluate(c.graph, c.inputs, outputs);
        std::string where =
            fmt::format("{} sample {} on {} ({} gradients, seed {})", op.name, which, device.id, wrt.size(), seed);
        std::map<std::string, Tensor> got;
        try {
          got = test::run_on(device, c.graph, c.inputs);
        } catch (const Error& e) {
          if (e.code == Code::declined && wide(c.graph)) {
            unsupported += fmt::format("\n{}: {}", where, e.what());
            continue;
          }
          FAIL() << where << ": " << e.what();
        }
        double length = reduction_length(c.graph);
        for (size_t k = 0; k < truth.size(); ++k) {
          const std::string& name = c.graph.states()[k].name;
          bool equal = op.exact || !is_float(truth[k].type.dtype);
          double bound =
              equal ? 0 : epsilon(truth[k].type.dtype) * 8 * (1 + std::sqrt(length)) * (name[0] == 'd' ? 4 : 1);
          double error = test::relative_error(got.at(name), truth[k]);
          EXPECT_TRUE(error <= bound) << where << " " << name << ": error " << error << " > " << bound;
        }
      }
    }
  }
  if (!unsupported.empty()) std::cout << "unsupported:" << unsupported << "\n";
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const OpDef* op : all_ops()) out.push_back(op->name);
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, OpParity, testing::ValuesIn(names()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tutti
