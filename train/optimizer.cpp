#include "train/optimizer.h"

#include <fmt/format.h>

#include <cmath>

#include "core/base/status.h"
#include "graph/ops/adam.h"
#include "graph/ops/adamw.h"
#include "graph/ops/add.h"
#include "graph/ops/cast.h"
#include "graph/ops/div.h"
#include "graph/ops/expm1.h"
#include "graph/ops/log.h"
#include "graph/ops/mul.h"
#include "graph/ops/neg.h"
#include "graph/ops/sgd.h"
#include "graph/ops/sgd_momentum.h"
#include "graph/ops/sub.h"

namespace tutti {
namespace {

/// Gives one parameter and its optimizer state their next values.
struct Update {
  Graph& g;
  std::string name;
  Value p, d, lr;

  Value moment(const char* which) const { return g.state(key(which), p.type(), StateRole::optimizer); }
  std::string key(const char* which) const { return fmt::format("optimizer.{}.{}", which, name); }
};

void update(const Update& u, const Sgd& o) {
  if (o.momentum == 0) {
    u.g.set_state(u.name, call(sgd_op, {u.p, u.d, u.lr}, {{"weight_decay", Reals{o.weight_decay}}}));
    return;
  }
  Values out = call_all(
      sgd_momentum_op, {u.p, u.d, u.moment("m"), u.lr},
      {{"momentum", Reals{o.momentum}}, {"nesterov", Ints{o.nesterov}}, {"weight_decay", Reals{o.weight_decay}}});
  u.g.set_state(u.name, out[0]);
  u.g.set_state(u.key("m"), out[1]);
}

template <class Options>
void update_adam(const Update& u, const OpDef& op, const Values& corrections, const Options& o) {
  Attrs attrs = {{"beta1", Reals{o.beta1}},
                 {"beta2", Reals{o.beta2}},
                 {"epsilon", Reals{o.epsilon}},
                 {"weight_decay", Reals{o.weight_decay}}};
  Values out = call_all(op, {u.p, u.d, u.moment("m"), u.moment("v"), u.lr, corrections[0], corrections[1]}, attrs);
  u.g.set_state(u.name, out[0]);
  u.g.set_state(u.key("m"), out[1]);
  u.g.set_state(u.key("v"), out[2]);
}

/// 1 - beta^t = -expm1(t ln beta), which keeps its digits for small t and beta near 1.
Value correction(Value t, double beta) { return -expm1(t * std::log(beta)); }

}  // namespace

std::string name(const Optimizer& o) {
  return std::holds_alternative<Sgd>(o) ? "sgd" : std::holds_alternative<Adam>(o) ? "adam" : "adamw";
}

double learning_rate(const Optimizer& optimizer) {
  return std::visit([](const auto& o) { return o.lr; }, optimizer);
}

void apply_optimizer(Graph& g, const Optimizer& optimizer, const std::vector<std::string>& parameters,
                     const Values& gradients, Value lr, Value step) {
  Graph::Scope scope(g, "update", Phase::update);
  Values corrections;
  auto correct = [&](const auto& o) {
    Value t = cast(step, lr.dtype()) + 1;
    corrections = {correction(t, o.beta1), correction(t, o.beta2)};
  };
  if (auto* o = std::get_if<Adam>(&optimizer)) correct(*o);
  if (auto* o = std::get_if<AdamW>(&optimizer)) correct(*o);
  for (size_t k = 0; k < parameters.size(); ++k) {
    if (!gradients[k])
      throw invalid(fmt::format("parameter '{}' has no gradient: the loss does not depend on it", parameters[k]));
    Update u{g, parameters[k], g.latest(parameters[k]), gradients[k], lr};
    if (auto* sgd = std::get_if<Sgd>(&optimizer)) {
      update(u, *sgd);
    } else if (auto* adam = std::get_if<Adam>(&optimizer)) {
      update_adam(u, adam_op, corrections, *adam);
    } else {
      update_adam(u, adamw_op, corrections, std::get<AdamW>(optimizer));
    }
  }
}

}  // namespace tutti
