#include "verify/bisect/bisect.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "verify/bisect/bisect_finding.h"
#include "verify/bisect/first_steps.h"

namespace tutti::bisect {
namespace {

/// A larger error of a state's change is not caused by rounding.
constexpr double norm_bound = 1e-3;
/// Largest error of a state if a maximum or relu chooses the other side.
constexpr double jump_bound = 0.05;

/// Relative error of a state in the 2-norm. It is relative to the state's change, except for parameters whose optimizer
/// divides by its moments, because there the smallest gradients determine signs.
double state_error(const State& state, const Tensor& got, const Tensor& want, const Tensors& before, bool moments) {
  auto it = before.find(state.name);
  bool whole = it == before.end() || (moments && state.role != StateRole::optimizer);
  return change_error(got, want, whole ? nullptr : &it->second);
}

/// The largest error of all states.
double worst_change(const Graph& step, const Tensors& got, const Tensors& want, const Tensors& before) {
  bool moments = std::ranges::any_of(step.states(), [](const State& s) { return s.role == StateRole::optimizer; });
  double worst = 0;
  for (const auto& [name, value] : want) {
    double e = state_error(*step.find_state(name), got.at(name), value, before, moments);
    if (!(e <= worst)) worst = e;
  }
  return worst;
}

class Bisection {
 public:
  Bisection(const Device& a, const Device& b, const BisectOptions& o) : o_(o) {
    result_.sides[0].device = a;
    result_.sides[1].device = b;
  }

  BisectResult run() {
    FirstSteps steps(o_);
    const Graph& step = steps.step();
    for (const BisectSide& s : result_.sides) {
      watch("compiling for " + s.device.id);
      sides_.push_back(std::make_unique<Side>(s.device, step));
      result_.nodes += sides_.back()->graph().nodes().size();
    }
    Tensors inputs = steps.inputs();
    for (int64_t n = 0; n < o_.steps && result_.findings.empty() && !(o_.stop && o_.stop()); ++n, ++result_.steps) {
      inputs["indices"] = steps.indices(n);
      watch(fmt::format("step {} of {}: float64", n + 1, o_.steps));
      Tensors truth = truths_of(steps.step(), inputs);
      for (size_t s = 0; s < 2; ++s) {
        watch(fmt::format("step {} of {}: {}", n + 1, o_.steps, sides_[s]->device().id));
        one_step(s, n, inputs, truth);
      }
      for (auto& [name, value] : truth)
        if (inputs.contains(name)) inputs[name] = std::move(value);
    }
    return std::move(result_);
  }

 private:
  void watch(const std::string& what) const {
    if (o_.watch) o_.watch(what);
  }

  void one_step(size_t s, int64_t n, const Tensors& inputs, const Tensors& truth) {
    Side& side = *sides_[s];
    BisectSide& outcome = result_.sides[s];
    side.step(inputs);
    double error = worst_change(side.graph(), side.plain(), truth, inputs);
    if (!(error <= outcome.error)) outcome.error = error;
    std::vector<Violation> wrong;
    for (Span span : side.groups())
      if (std::optional<Violation> v = side.examine(span, side.kept(), outcome.share)) wrong.push_back(std::move(*v));
    double apart = worst_change(side.graph(), side.kept(), side.plain(), inputs);
    if (!(apart <= outcome.apart)) outcome.apart = apart;
    bool damaged = wrong.empty() && !(apart <= norm_bound) && !(error <= norm_bound);
    if (wrong.empty() && !damaged) return;
    watch(fmt::format("step {} of {}: {} is wrong; looking for the node", n + 1, o_.steps, side.device().id));
    Finding f = damaged ? find_damage(side) : find_node(side, std::move(wrong[0]));
    if (f.kind == Finding::states && apart <= jump_bound) return;  // a near tie that went the other way
    f.side = s;
    f.step = n;
    f.more = wrong.empty() ? 0 : wrong.size() - 1;
    outcome.share = std::max(outcome.share, f.own.share);
    ask_both(f, side, sides_[1 - s]->device());
    result_.findings.push_back(std::move(f));
  }

  const BisectOptions& o_;
  BisectResult result_;
  std::vector<std::unique_ptr<Side>> sides_;
};

}  // namespace

BisectResult bisect(const Device& a, const Device& b, const BisectOptions& options) {
  return Bisection(a, b, options).run();
}

}  // namespace tutti::bisect
