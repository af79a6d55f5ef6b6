#include "verify/bisect/bisect_exact.h"

#include <fmt/format.h>

#include "core/runtime/selector.h"
#include "graph/passes/rewrite.h"
#include "train/run/reference.h"
#include "verify/bisect/first_steps.h"
#include "verify/parity/compare.h"

namespace tutti::bisect {
namespace {

const std::map<std::string, std::string> exact = {{"numerics", "exact"}};

/// The step as every device computes it.
Graph lowered(const Device& device, const Graph& step) {
  Session session(device, exact);
  Legalizer legalizer(session);
  return legalizer.run(expand_for_device(step, legalizer));
}

/// The graph with every value kept in a state.
Graph all_kept(const Graph& g) {
  Rewriter r(g);
  for (const Node& n : g.nodes()) r.copy(n);
  for (const Node& n : g.nodes())
    for (ValueId v : n.results)
      if (v != no_id) r.to().set_state(value_name(v), r[v]);
  return r.finish();
}

/// One device with the step, all values of which it keeps.
class ExactSide {
 public:
  ExactSide(const Device& device, const Graph& kept) : session_(device, exact), program_(session_, kept) {}
  void step(const Tensors& inputs) { results_ = program_.run(inputs); }
  const Tensors& results() const { return results_; }

 private:
  Session session_;
  parity::DeviceProgram program_;
  Tensors results_;
};

}  // namespace

ExactResult bisect_exact(const Device& a, const Device& b, const BisectOptions& o) {
  auto watch = [&](const std::string& what) {
    if (o.watch) o.watch(what);
  };
  FirstSteps steps(o);
  Device reference = select_device(reference_device);
  Graph g = lowered(reference, steps.step()), kept = all_kept(g);
  ExactResult result{.nodes = g.nodes().size(), .finding = {}};
  std::vector<std::unique_ptr<ExactSide>> sides;
  for (const Device& d : {a, b}) {
    watch("compiling for " + d.id);
    sides.push_back(std::make_unique<ExactSide>(d, kept));
  }
  Tensors inputs = steps.inputs();
  for (; result.steps < o.steps && !(o.stop && o.stop()); ++result.steps) {
    inputs["indices"] = steps.indices(result.steps);
    for (size_t s = 0; s < 2; ++s) {
      watch(fmt::format("step {} of {}: {}", result.steps + 1, o.steps, (s ? b : a).id));
      sides[s]->step(inputs);
    }
    const Tensors &x = sides[0]->results(), &y = sides[1]->results();
    for (uint32_t k = 0; k < g.nodes().size(); ++k) {
      const Node& n = g.nodes()[k];
      for (ValueId v : n.results) {
        if (v == no_id) continue;
        parity::Difference d = parity::compare_bits(x.at(value_name(v)), y.at(value_name(v)));
        if (d.ok) continue;
        ExactFinding f{
            .step = result.steps, .node = k, .blamed = n, .inputs = {}, .results = {}, .difference = d, .wrong = {}};
        for (ValueId i : n.inputs) f.inputs.push_back(g.info(i).type);
        for (ValueId i : n.results) f.results.push_back(i == no_id ? TensorType{} : g.info(i).type);
        watch(fmt::format("step {} of {}: asking {}", result.steps + 1, o.steps, reference.id));
        ExactSide judge(reference, kept);
        judge.step(inputs);
        const Tensor& right = judge.results().at(value_name(v));
        bool a_right = parity::compare_bits(x.at(value_name(v)), right).ok;
        bool b_right = parity::compare_bits(y.at(value_name(v)), right).ok;
        if (a_right != b_right) f.wrong = a_right ? 1 : 0;
        result.finding = std::move(f);
        ++result.steps;
        return result;
      }
    }
    for (const auto& [name, value] : x)
      if (inputs.contains(name)) inputs[name] = value;
  }
  return result;
}

}  // namespace tutti::bisect
