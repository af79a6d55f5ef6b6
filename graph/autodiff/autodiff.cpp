#include "graph/autodiff/autodiff.h"

#include <fmt/format.h>

#include <map>

#include "core/base/status.h"
#include "graph/op.h"
#include "graph/ops/add.h"

namespace tutti {
namespace {

/// Per value: whether it depends on one of `wrt` through float values of the nodes from `first` on.
std::vector<bool> reached_from(const Graph& g, const Values& wrt, size_t first) {
  std::vector<bool> on(g.values().size());
  for (const Value& v : wrt) on[v.id()] = true;
  for (size_t k = first; k < g.nodes().size(); ++k) {
    const Node& n = g.nodes()[k];
    bool any = false;
    for (ValueId i : n.inputs) any = any || on[i];
    if (any)
      for (ValueId r : n.results) on[r] = on[r] || is_float(g.info(r).type.dtype);
  }
  return on;
}

/// The gradient of a value that no result depends on.
Value missing(const Value& v, Unreached unreached) {
  return unreached == Unreached::null ? Value{} : v.graph().full(v.dtype(), 0, v.shape());
}

}  // namespace

Values gradients(const Values& results, const Values& seeds, const Values& wrt, Unreached unreached, size_t first) {
  if (results.empty()) {
    Values none_reach;
    for (const Value& v : wrt) none_reach.push_back(missing(v, unreached));
    return none_reach;
  }
  Graph& g = results[0].graph();
  std::vector<bool> on = reached_from(g, wrt, first);
  std::map<ValueId, Value> d;
  auto give = [&](ValueId to, Value v) {
    auto [it, fresh] = d.try_emplace(to, v);
    if (!fresh) it->second = it->second + v;
  };
  for (size_t k = 0; k < results.size(); ++k) {
    if (seeds[k].type() != results[k].type())
      throw invalid(fmt::format("gradients: the seed has type {}, but the result has type {}",
                                to_string(seeds[k].type()), to_string(results[k].type())));
    if (on[results[k].id()]) give(results[k].id(), seeds[k]);
  }
  Origin origin = g.origin();
  for (size_t k = g.nodes().size(); k-- > first;) {
    const Node n = g.nodes()[k];  // a copy: the rules append nodes
    VjpContext pull{.graph = g, .in = {}, .out = {}, .d = {}, .a = n.attrs, .wants = {}};
    Values in, out, cotangents;
    bool flows = false, wanted = false;
    for (ValueId r : n.results) {
      auto it = d.find(r);
      cotangents.push_back(it == d.end() ? Value{} : it->second);
      flows = flows || it != d.end();
      out.push_back(g.value(r));
    }
    if (!flows) continue;
    for (ValueId i : n.inputs) {
      in.push_back(g.value(i));
      pull.wants.push_back(on[i] && is_float(g.info(i).type.dtype));
      wanted = wanted || pull.wants.back();
    }
    if (!wanted) continue;
    pull.in = in;
    pull.out = out;
    pull.d = cotangents;
    bool named = n.label.empty() || n.phase == Phase::backward;
    g.set_origin({named ? n.label : n.label + ".backward", Phase::backward});
    Values back = pull_back(*n.op, pull);
    for (size_t i = 0; i < in.size(); ++i) {
      if (!pull.wants[i] || !back[i]) continue;
      if (back[i].type() != in[i].type())
        throw Error(Code::internal, fmt::format("{}: the gradient of input {} has type {}, but the input has type {}",
                                                n.op->name, i, to_string(back[i].type()), to_string(in[i].type())));
      give(in[i].id(), back[i]);
    }
  }
  g.set_origin(std::move(origin));
  Values out;
  for (const Value& v : wrt) {
    auto it = d.find(v.id());
    out.push_back(it == d.end() ? missing(v, unreached) : it->second);
  }
  return out;
}

Values gradients(Value loss, const Values& wrt, Unreached unreached) {
  if (!loss.shape().empty() || !is_float(loss.dtype()))
    throw invalid(fmt::format("gradients: the loss is {}, not a scalar of a float dtype", to_string(loss.type())),
                  "reduce it with mean() or sum()");
  return gradients(Values{loss}, Values{loss.like(1)}, wrt, unreached);
}

}  // namespace tutti
