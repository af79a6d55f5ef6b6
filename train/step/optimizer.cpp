#include "train/step/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "graph/ops/mul.h"
#include "train/step/one_node.h"

namespace tutti {

Optimizer::Record::~Record() = default;

std::string name(const Optimizer& optimizer) { return optimizer.record_->name(); }

double learning_rate(const Optimizer& optimizer) { return optimizer.record_->lr(); }

std::vector<Optimizer> all_optimizers() {
  return std::apply([](const auto&... o) { return std::vector<Optimizer>{o...}; }, BuiltInOptimizers());
}

Optimizer optimizer_named(const std::string& text) {
  std::vector<std::string> names;
  for (const Optimizer& o : all_optimizers()) {
    if (name(o) == text) return o;
    names.push_back(name(o));
  }
  throw OptionError(invalid(fmt::format("unknown optimizer '{}'", text), "use " + alternatives(names)), "optimizer");
}

std::vector<Hyperparameter> hyperparameters(Optimizer& optimizer) { return optimizer.record_->hyperparameters(); }

void check(const Optimizer& optimizer) {
  const std::string own = name(optimizer);
  if (own.empty()) throw invalid("an optimizer has no name", "set `name` in its record: checkpoints contain it");
  for (const Optimizer& o : all_optimizers())
    if (name(o) == own && o.record_->type() != optimizer.record_->type())
      throw invalid(fmt::format("optimizer '{}' has the name of a built-in optimizer", own), "choose another name");
  if (double lr = learning_rate(optimizer); !std::isfinite(lr)) throw invalid_option("lr", lr, "must be finite");
  Optimizer copy = optimizer;  // whose hyperparameters can be read
  std::set<std::string> options;
  for (const Hyperparameter& h : hyperparameters(copy)) {
    if (!h.option || !*h.option || (!h.value && !h.flag))
      throw invalid(fmt::format("optimizer '{}' has a hyperparameter without a name or a value", own),
                    "set `option` and `value` in its hyperparameters()");
    if (!options.insert(h.option).second)
      throw invalid(fmt::format("optimizer '{}' has two hyperparameters '{}'", own, h.option), "rename one");
    if (!h.flag && !std::isfinite(*h.value)) throw invalid_option(h.option, *h.value, "must be finite");
  }
  optimizer.record_->check();
}

namespace {

/// How far a graph was built.
struct Built {
  explicit Built(const Graph& g) : nodes(g.nodes().size()), states(g.states().size()) {}
  size_t nodes, states;
};

/// Checks that the parameter and every moment that was read since `before` have a next value.
void expect_set(Graph& g, const Built& before, const std::string& optimizer, const std::string& parameter, Value p) {
  if (g.latest(parameter) == p)
    throw invalid(fmt::format("optimizer '{}' does not set the next value of parameter '{}'", optimizer, parameter),
                  "its update must set it with set_parameter()");
  for (size_t i = before.states; i < g.states().size(); ++i)
    if (const State& s = g.states()[i]; s.before != no_id && s.before == s.after)
      throw invalid(
          fmt::format("optimizer '{}' reads the state '{}', but does not set its next value", optimizer, s.name),
          "its update must set it with set_moment()");
}

/// Whether the state is "optimizer.WHICH.PARAMETER".
bool is_moment(std::string_view state, const std::string& parameter) {
  constexpr std::string_view prefix = "optimizer.";
  if (!state.starts_with(prefix)) return false;
  state.remove_prefix(prefix.size());
  const size_t dot = state.find('.');
  return dot != std::string_view::npos && state.substr(dot + 1) == parameter;
}

/// Checks that what was built since `before`, for one parameter or ("") for all, uses the values `given` and states of
/// its own.
void expect_own(const Graph& g, const Built& before, const std::string& optimizer, const std::string& parameter,
                const Values& given) {
  const std::string where = parameter.empty() ? "what it shares" : fmt::format("the update of '{}'", parameter);
  auto refuse = [&](const std::string& what) {
    return invalid(fmt::format("optimizer '{}': {} uses {}, but each rank updates only some of the parameters",
                               optimizer, where, what),
                   option_text("shard", "none") + " and equal devices, or an update of each parameter by itself");
  };
  std::set<std::string> own_states;
  for (size_t i = before.states; i < g.states().size(); ++i) {
    const std::string& state = g.states()[i].name;
    if (!parameter.empty() && !is_moment(state, parameter)) throw refuse(fmt::format("the state '{}'", state));
    own_states.insert(state);
  }
  for (size_t i = before.nodes; i < g.nodes().size(); ++i)
    for (ValueId id : g.nodes()[i].inputs) {
      const ValueInfo& v = g.info(id);
      const bool own = v.role == Role::constant || (v.role == Role::temp && v.producer >= before.nodes) ||
                       (v.role == Role::state && own_states.contains(v.name)) ||
                       std::ranges::any_of(given, [&](Value x) { return x.id() == id; });
      if (!own) throw refuse(v.name.empty() ? "a value of other parameters" : fmt::format("'{}'", v.name));
    }
}

/// The parameter and its moments that have been set since `before`.
std::vector<std::string> states_of(const Graph& g, const Built& before, const std::string& parameter) {
  std::vector<std::string> names = {parameter};
  for (size_t i = before.states; i < g.states().size(); ++i) names.push_back(g.states()[i].name);
  return names;
}

}  // namespace

void apply_optimizer(Graph& g, const Optimizer& optimizer, const std::vector<nn::Parameter>& parameters,
                     const Values& gradients, Value lr, Value step, bool divided) {
  check(optimizer);
  const std::string own = name(optimizer);
  Graph::Scope scope(g, "update", Phase::update);
  Built start(g);
  const Values shared = optimizer.record_->shared(g, lr, step);
  if (divided) expect_own(g, start, own, "", {lr, step});
  std::map<double, Value> rates = {{1, lr}};
  for (size_t k = 0; k < parameters.size(); ++k) {
    const nn::Parameter& p = parameters[k];
    Value& rate = rates[p.properties.lr_scale];
    if (!rate) rate = lr * p.properties.lr_scale;
    Built before(g);
    const Value now = g.latest(p.name);
    optimizer.record_->update({g, p.name, now, gradients[k], rate, p.properties.decay, shared});
    expect_set(g, before, own, p.name, now);
    Values given = shared;
    given.insert(given.end(), {now, gradients[k], rate});
    if (divided) expect_own(g, before, own, p.name, given);
    make_one_node(g, before.nodes, states_of(g, before, p.name), own);
  }
}

}  // namespace tutti
