#include "graph/verify.h"

#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/op.h"

namespace tutti {

void verify(const Graph& g) {
  auto fail = [](const std::string& text) { throw Error(Code::internal, "graph: " + text); };
  std::vector<bool> known(g.values().size());
  for (ValueId id = 0; id < known.size(); ++id) known[id] = g.info(id).role != Role::temp;
  for (size_t k = 0; k < g.nodes().size(); ++k) {
    const Node& n = g.nodes()[k];
    std::string where = fmt::format("node {} ({})", k, n.op->name);
    std::vector<TensorType> types;
    for (ValueId i : n.inputs) {
      if (i >= known.size()) fail(fmt::format("{} reads value {}, which does not exist", where, i));
      if (!known[i]) fail(fmt::format("{} reads %{} before it is produced", where, i));
      types.push_back(g.info(i).type);
    }
    Types expected = infer_types(*n.op, types, n.attrs);
    if (expected.size() != n.results.size())
      fail(fmt::format("{} has {} results, expected {}", where, n.results.size(), expected.size()));
    for (size_t r = 0; r < expected.size(); ++r) {
      ValueId v = n.results[r];
      if (v >= known.size()) fail(fmt::format("{} produces value {}, which does not exist", where, v));
      if (known[v]) fail(fmt::format("{} produces %{}, which is already produced by another node", where, v));
      if (g.info(v).type != expected[r])
        fail(fmt::format("{} produces a value of type {}, but the value is declared as {}", where,
                         to_string(expected[r]), to_string(g.info(v).type)));
      known[v] = true;
    }
  }
  for (const State& s : g.states())
    if (s.after >= known.size() || !known[s.after]) fail(fmt::format("state '{}' has no value after the step", s.name));
}

}  // namespace tutti
