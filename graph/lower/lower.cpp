#include "graph/lower/lower.h"

#include "graph/lower/own_ops.h"
#include "graph/op.h"
#include "graph/passes/exchange.h"

namespace tutti {
namespace {

template <class T>
TuttiArray array_of(const std::vector<T>& v) {
  return {v.data(), static_cast<uint32_t>(v.size()), sizeof(T)};
}

}  // namespace

TuttiArray Lowered::attrs_of(const Attrs& attrs) {
  std::vector<TuttiAttr> list;
  for (const auto& [name, value] : attrs) {
    TuttiAttr a{texts_.emplace_back(name).c_str(), static_cast<uint32_t>(value.index()), 0, nullptr};
    if (auto* ints = std::get_if<Ints>(&value)) {
      a.data = ints_.emplace_back(*ints).data();
      a.count = static_cast<uint32_t>(ints->size());
    } else if (auto* reals = std::get_if<Reals>(&value)) {
      a.data = reals_.emplace_back(*reals).data();
      a.count = static_cast<uint32_t>(reals->size());
    } else {
      const std::string& text = texts_.emplace_back(std::get<std::string>(value));
      a.data = text.c_str();
      a.count = static_cast<uint32_t>(text.size());
    }
    list.push_back(a);
  }
  return array_of(attrs_.emplace_back(std::move(list)));
}

Lowered::Lowered(const Graph& g, std::vector<TuttiGroup> groups, uint32_t numerics) : groups_(std::move(groups)) {
  bool exact = numerics == TUTTI_EXACT;
  std::vector<bool> read(g.values().size());
  for (const Node& n : g.nodes())
    for (ValueId i : n.inputs) read[i] = true;
  for (const State& s : g.states()) read[s.after] = true;

  std::vector<uint32_t> number(g.values().size(), TUTTI_NONE);  // unused temps are not passed on
  for (ValueId id = 0; id < g.values().size(); ++id) {
    const ValueInfo& v = g.info(id);
    if (v.role == Role::temp && !read[id]) continue;
    number[id] = static_cast<uint32_t>(values_.size());
    const Shape& dims = ints_.emplace_back(v.type.shape);
    TuttiValue raw{.role = static_cast<uint32_t>(v.role),
                   .dtype = static_cast<uint32_t>(v.type.dtype),
                   .rank = static_cast<uint32_t>(dims.size()),
                   .unused = 0,
                   .dims = dims.data(),
                   .name = nullptr,
                   .data = nullptr};
    if (!v.name.empty()) raw.name = texts_.emplace_back(v.name).c_str();
    if (v.role == Role::constant) raw.data = data_.emplace_back(v.data).data();
    if (v.role == Role::feed) feeds_.push_back(v.name);
    values_.push_back(raw);
  }
  for (const Node& n : g.nodes()) {
    phases_.push_back(n.phase);
    if (n.op == &exchange_op) exchanges_.push_back(n.attrs.i("number"));
    std::vector<uint32_t>& inputs = ids_.emplace_back(n.inputs);
    std::vector<uint32_t>& results = ids_.emplace_back(n.results);
    for (uint32_t& i : inputs) i = number[i];
    for (uint32_t& r : results) r = number[r];
    TuttiArray expr{nullptr, 0, sizeof(TuttiInstr)};
    if (n.op->reference && find_op(n.op->name) != n.op) lend_definition(*n.op);
    if (n.op->expr) {
      std::vector<DType> dtypes;
      for (ValueId i : n.inputs) dtypes.push_back(g.info(i).type.dtype);
      expr = array_of(exprs_.emplace_back(expr_of(*n.op, dtypes, n.attrs).code));
    }
    nodes_.push_back({.op = n.op->name.c_str(),
                      .label = texts_.emplace_back(n.label).c_str(),
                      .version = static_cast<uint32_t>(n.op->version),
                      .flags = n.op->exact || (exact && n.op->expr) ? uint32_t{TUTTI_NODE_EXACT} : 0u,
                      .inputs = inputs.data(),
                      .results = results.data(),
                      .input_count = static_cast<uint32_t>(inputs.size()),
                      .result_count = static_cast<uint32_t>(results.size()),
                      .attrs = attrs_of(n.attrs),
                      .expr = expr});
  }
  for (const State& s : g.states())
    states_.push_back(
        {texts_.emplace_back(s.name).c_str(), s.before == no_id ? TUTTI_NONE : number[s.before], number[s.after]});
  program_ = {.size = sizeof(TuttiProgram),
              .numerics = numerics,
              .required = 0,
              .values = array_of(values_),
              .nodes = array_of(nodes_),
              .states = array_of(states_),
              .groups = array_of(groups_)};
}

}  // namespace tutti
