#include "train/step/one_node.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/dtype.h"
#include "graph/functions/scalar_function.h"
#include "graph/op.h"

namespace tutti {
namespace {

// Devices bind eight buffers or more per kernel: these, and one result (they split nodes with several).
constexpr size_t most_inputs = 7;

/// The ops behind some values of one shape, and what these ops read.
struct Part {
  std::set<uint32_t> nodes;
  std::vector<ValueId> inputs;
};

bool is_scalar_constant(const ValueInfo& v) { return v.role == Role::constant && v.type.shape.empty(); }

Part part_of(const Graph& g, size_t first, const std::vector<ValueId>& results) {
  const Shape& shape = g.info(results[0]).type.shape;
  Part part;
  std::set<ValueId> seen;
  std::vector<ValueId> open = results;
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    const ValueInfo& v = g.info(id);
    const bool made = v.role == Role::temp && v.producer >= first && v.type.shape == shape;
    if (made && g.nodes()[v.producer].op->elementwise() && !g.nodes()[v.producer].op->exact) {
      if (part.nodes.insert(v.producer).second)
        open.insert(open.end(), g.nodes()[v.producer].inputs.begin(), g.nodes()[v.producer].inputs.end());
    } else if (!is_scalar_constant(v)) {
      part.inputs.push_back(id);
    }
  }
  std::ranges::sort(part.inputs);
  return part;
}

}  // namespace

void make_one_node(Graph& g, size_t first, const std::vector<std::string>& names, const std::string& label) {
  std::vector<ValueId> results;
  for (const std::string& name : names) results.push_back(g.latest(name).id());
  const Part part = part_of(g, first, results);
  const bool all = std::ranges::all_of(
      results, [&](ValueId id) { return g.info(id).role == Role::temp && part.nodes.contains(g.info(id).producer); });
  if (!all || part.nodes.size() < 2 || part.inputs.size() > most_inputs) return;
  auto again = [&](const Values& x) {
    Graph& to = x[0].graph();
    std::map<ValueId, Value> at;
    for (size_t i = 0; i < x.size(); ++i) at.emplace(part.inputs[i], x[i]);
    for (uint32_t k : part.nodes) {
      const Node& n = g.nodes()[k];
      Values in;
      for (ValueId id : n.inputs) {
        const ValueInfo& v = g.info(id);
        in.push_back(at.contains(id) ? at.at(id) : to.full(v.type.dtype, load_element(v.type.dtype, v.data.data(), 0)));
      }
      const Values out = to.add(*n.op, in, n.attrs);
      for (size_t r = 0; r < out.size(); ++r) at.emplace(n.results[r], out[r]);
    }
    Values out;
    for (ValueId id : results) out.push_back(at.at(id));
    return out;
  };
  Values inputs;
  for (ValueId id : part.inputs) inputs.push_back(g.value(id));
  Graph::Scope scope(g, label);
  const Values out = elementwise_node(label, inputs, again);
  for (size_t i = 0; i < names.size(); ++i) g.set_state(names[i], out[i]);
}

}  // namespace tutti
