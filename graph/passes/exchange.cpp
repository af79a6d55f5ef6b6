#include "graph/passes/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <tuple>

#include "core/base/status.h"
#include "graph/op.h"
#include "graph/ops/add.h"
#include "graph/ops/cast.h"
#include "graph/ops/reshape.h"
#include "graph/ops/slice.h"
#include "graph/passes/rewrite.h"

namespace tutti {
namespace {

TensorType type_of(const Attrs& a) {
  auto dtype = parse_dtype(a.text("dtype"));
  if (!dtype) throw invalid(fmt::format("unknown dtype '{}'", a.text("dtype")));
  return {*dtype, a.ints("shape")};
}

Exchange read(const Attrs& a) {
  return {.number = a.i("number"),
          .kind = static_cast<Exchange::Kind>(a.i("kind")),
          .owner = static_cast<int>(a.i("owner")),
          .begun = a.i("begun"),
          .type = type_of(a)};
}

/// Ops that are cheaper to compute again than to keep the result of.
bool is_cheap(const OpDef& op) {
  constexpr std::array copies = {"reshape", "transpose", "slice", "pad", "concat", "broadcast", "flip"};
  return op.elementwise() || std::ranges::find(copies, std::string_view(op.name)) != copies.end();
}

std::set<std::string> absent_states(const Graph& g, const Division& division, const std::string& prefix) {
  std::set<std::string> names;
  for (const State& s : g.states()) {
    const bool sum = s.name.starts_with(prefix);
    if (division.absent(sum ? s.name.substr(prefix.size()) : s.name)) names.insert(s.name);
  }
  return names;
}

class Divider {
  /// A parameter that a module gets.
  struct Fetch {
    const State* parameter;
    ValueId value;       ///< what travels: the parameter, or a cast of it
    const Node* reader;  ///< the first
    int64_t number = 0;
    Value begun = {}, there = {};
  };

 public:
  Divider(const Graph& g, const Division& division, const std::string& prefix)
      : g_(g),
        division_(division),
        prefix_(prefix),
        parameter_(g.values().size()),
        sent_as_(g.values().size()),
        derived_(g.values().size()),
        sum_(g.nodes().size(), no_id),
        absent_(absent_states(g, division, prefix)),
        r_(g, absent_) {
    std::vector<bool> stored(g.values().size());
    for (const State& s : g.states()) {
      stored[s.after] = true;
      if (s.before != no_id && division.contains(s.name)) parameter_[s.before] = &s;
      if (s.name.starts_with(prefix) && division.contains(s.name.substr(prefix.size()))) sum_[adding(s)] = addend(s);
    }
    for (const Node& n : g.nodes()) {
      const bool known = std::ranges::all_of(n.inputs, [&](ValueId i) { return made(i) || is_constant(i); });
      if (!known || !is_cheap(*n.op) || std::ranges::none_of(n.inputs, [&](ValueId i) { return made(i); })) continue;
      if (std::ranges::any_of(n.results, [&](ValueId v) { return stored[v]; })) continue;
      for (ValueId v : n.results) derived_[v] = true;
    }
    narrow();
    for (const Node& n : g.nodes())
      if (!derived_[n.results[0]])
        for (ValueId i : n.inputs)
          if (made(i)) list(i, n);
  }

  Graph run() {
    for (uint32_t k = 0; k < g_.nodes().size(); ++k) {
      const Node& n = g_.nodes()[k];
      if (derived_[n.results[0]]) continue;
      for (ValueId i : n.inputs)
        if (made(i)) r_.set(i, make(i, n));
      if (sum_[k] == no_id)
        r_.copy(n);
      else
        add_sum(n, sum_[k]);
    }
    if (sent_) r_.to().set_state("exchanged", sent_, StateRole::metric);
    return r_.finish();
  }

 private:
  bool made(ValueId v) const { return parameter_[v] || derived_[v]; }
  bool is_constant(ValueId v) const { return g_.info(v).role == Role::constant; }

  /// The node that adds to a state.
  uint32_t adding(const State& s) const {
    const uint32_t k = g_.info(s.after).producer;
    if (k == no_id || g_.nodes()[k].op != &add_op || std::ranges::count(g_.nodes()[k].inputs, s.before) != 1)
      throw Error(Code::internal, fmt::format("state '{}' is not a sum", s.name));
    return k;
  }
  ValueId addend(const State& s) const {
    const std::vector<ValueId>& inputs = g_.nodes()[adding(s)].inputs;
    return inputs[0] == s.before ? inputs[1] : inputs[0];
  }

  /// Parameters of which only casts to one type of two bytes are read: the casts travel instead.
  void narrow() {
    std::vector<std::set<ValueId>> readers(parameter_.size());
    std::vector<bool> whole(parameter_.size());
    for (const Node& n : g_.nodes())
      for (ValueId i : n.inputs) {
        if (!parameter_[i]) continue;
        const ValueId v = n.results[0];
        if (n.op == &cast_op && derived_[v] && size_of(g_.info(v).type.dtype) == 2)
          readers[i].insert(v);
        else
          whole[i] = true;
      }
    for (ValueId p = 0; p < parameter_.size(); ++p) {
      if (!parameter_[p]) continue;
      auto type = [&](ValueId v) { return g_.info(v).type.dtype; };
      const bool one = !whole[p] && !readers[p].empty() &&
                       std::ranges::all_of(readers[p], [&](ValueId v) { return type(v) == type(*readers[p].begin()); });
      if (!one) sent_as_[p] = parameter_[p];
      for (ValueId v : readers[p])
        if (one) sent_as_[v] = parameter_[p];
    }
  }

  /// Adds what node `n` reads to the parameters that travel, in their order.
  void list(ValueId v, const Node& n) {
    if (const State* s = sent_as_[v]) {
      if (places_.try_emplace({s, n.label, n.phase}, fetches_.size()).second) fetches_.push_back({s, v, &n});
      return;
    }
    for (ValueId i : g_.nodes()[g_.info(v).producer].inputs)
      if (made(i)) list(i, n);
  }

  /// One of them begins to travel.
  void begin(Fetch& f) {
    r_.to().set_origin(*f.reader);
    const int owner = division_.owner.at(f.parameter->name);
    const TensorType& type = g_.info(f.value).type;
    Value mine;
    if (owner == division_.rank) mine = kept(*f.parameter);
    if (mine && mine.type() != type) mine = cast(mine, type.dtype);
    f.number = numbers_++;
    f.begun =
        exchange(r_.to(), mine, {.number = f.number, .kind = Exchange::Kind::begin, .owner = owner, .type = type});
  }

  /// One of them, at the first node that reads it; the next one begins to travel.
  Value fetched(size_t place, const Node& n) {
    Fetch& f = fetches_[place];
    if (f.there) return f.there;
    if (!f.begun) begin(f);
    r_.to().set_origin(n);
    f.there = exchange(r_.to(), f.begun,
                       {.number = numbers_++,
                        .kind = Exchange::Kind::await,
                        .owner = division_.owner.at(f.parameter->name),
                        .begun = f.number,
                        .type = g_.info(f.value).type});
    if (place + 1 < fetches_.size()) begin(fetches_[place + 1]);
    return f.there;
  }

  /// A parameter, or what is derived from it, for the module and pass of node `n`.
  Value make(ValueId v, const Node& n) {
    auto [at, fresh] = made_.try_emplace({v, n.label, n.phase});
    if (!fresh) return at->second;
    Value x;
    if (const State* s = sent_as_[v]) {
      x = fetched(places_.at({s, n.label, n.phase}), n);
    } else {
      const Node& from = g_.nodes()[g_.info(v).producer];
      Values in;
      for (ValueId i : from.inputs) in.push_back(made(i) ? make(i, n) : r_[i]);
      r_.to().set_origin(n);
      Values out = r_.to().add(*from.op, in, from.attrs);
      x = out[static_cast<size_t>(std::ranges::find(from.results, v) - from.results.begin())];
    }
    return made_[{v, n.label, n.phase}] = x;
  }

  Value kept(const State& s) { return r_.to().state(s.name, g_.info(s.before).type); }

  /// Node `n` adds `x` to a state: the owner the sum of all ranks, the others send it theirs.
  void add_sum(const Node& n, ValueId x) {
    r_.to().set_origin(n);
    const ValueId state = n.inputs[0] == x ? n.inputs[1] : n.inputs[0];
    const int owner = division_.owner.at(g_.info(state).name.substr(prefix_.size()));
    const Value mine = r_[x];
    const Value all = exchange(r_.to(), mine, {.number = numbers_++, .owner = owner, .type = mine.type()});
    if (owner == division_.rank) {
      r_.set(x, all);
      r_.copy(n);
      r_.set(x, mine);
      return;
    }
    // what is sent must be computed, although nothing here reads the sum
    const Value one = reshape(slice(reshape(all, {num_elements(all.shape())}), {0}, {1}), {});
    sent_ = sent_ ? sent_ + one : one;
  }

  const Graph& g_;
  const Division& division_;
  const std::string& prefix_;
  std::vector<const State*> parameter_;  // per value: the divided parameter that it is
  std::vector<const State*> sent_as_;    // per value: the divided parameter that travels as this value
  std::vector<bool> derived_;            // per value: computed from divided parameters and constants alone
  std::vector<ValueId> sum_;             // per node: the value that it adds to a divided state
  std::set<std::string> absent_;         // states
  Rewriter r_;
  std::vector<Fetch> fetches_;                                             // in the order in which they travel
  std::map<std::tuple<const State*, std::string, Phase>, size_t> places_;  // among them
  std::map<std::tuple<ValueId, std::string, Phase>, Value> made_;
  int64_t numbers_ = 0;
  Value sent_;
};

}  // namespace

const OpDef exchange_op{
    .name = "tutti.exchange",
    .doc = "x of another rank, or the sum of all ranks' x; in two nodes if other nodes run meanwhile",
    .inputs = {"x..."},
    .attrs = {{"number", Ints{0}},
              {"kind", Ints{0}},
              {"owner", Ints{0}},
              {"begun", Ints{0}},
              {"dtype", std::string("f32")},
              {"shape", Ints{}}},
    .ordered = true,
    .infer =
        [](std::span<const TensorType> in, const Attrs& a) {
          TensorType type = type_of(a);
          if (in.size() > 1 || (in.size() == 1 && in[0] != type))
            throw invalid(fmt::format("at most one value of type {} can be exchanged", to_string(type)));
          return Types{type};
        },
};

Value exchange(Graph& g, Value x, const Exchange& how) {
  return g.add(exchange_op, x ? Values{x} : Values{},
               {{"number", Ints{how.number}},
                {"kind", Ints{static_cast<int64_t>(how.kind)}},
                {"owner", Ints{how.owner}},
                {"begun", Ints{how.begun}},
                {"dtype", std::string(name(how.type.dtype))},
                {"shape", how.type.shape}})[0];
}

std::vector<Exchange> exchanges_of(const Graph& g) {
  std::vector<Exchange> all;
  for (const Node& n : g.nodes())
    if (n.op == &exchange_op) all.push_back(read(n.attrs.over(exchange_op.attrs)));
  return all;
}

Graph divide(const Graph& g, const Division& division, const std::string& prefix) {
  return Divider(g, division, prefix).run();
}

}  // namespace tutti
