#include "graph/passes/loss_parts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/base/shape.h"
#include "graph/along_axis.h"
#include "graph/op.h"
#include "graph/ops/add.h"
#include "graph/ops/argmax.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/cast.h"
#include "graph/ops/concat.h"
#include "graph/ops/cross_entropy.h"
#include "graph/ops/log_softmax.h"
#include "graph/ops/logsumexp.h"
#include "graph/ops/matmul.h"
#include "graph/ops/max.h"
#include "graph/ops/mean.h"
#include "graph/ops/min.h"
#include "graph/ops/quantized_matmul.h"
#include "graph/ops/reshape.h"
#include "graph/ops/softmax.h"
#include "graph/ops/sum.h"
#include "graph/passes/dce.h"
#include "graph/passes/rewrite.h"
#include "graph/passes/simplify.h"

namespace tutti {
namespace {

/// What a node makes of the rows of its inputs, which are their first axis.
struct Use {
  enum { other, rows, sum } of = other;  ///< each row of the result is made of those rows, or the result is their sum
  std::vector<bool> cut = {};            ///< per input: whether it has the rows
  bool product = false;
};

bool is_one_of(const OpDef* op, std::initializer_list<const OpDef*> list) {
  return std::ranges::find(list, op) != list.end();
}

Use use_of_product(const Graph& g, const Node& n, int64_t rows) {
  const Shape &a = g.info(n.inputs[0]).type.shape, &b = g.info(n.inputs[1]).type.shape;
  Use use{.cut = std::vector<bool>(n.inputs.size()), .product = true};
  const bool matrices = a.size() == 2 && b.size() == 2 && a[0] == rows;
  const bool plain = n.op != &matmul_op;
  const bool ta = !plain && n.attrs.i("ta") != 0, tb = !plain && n.attrs.i("tb") != 0;
  if (!matrices || (ta && (tb || b[0] != rows))) return use;
  use.of = ta ? Use::sum : Use::rows;
  use.cut[0] = true;
  use.cut[1] = ta;
  return use;
}

Use use_of(const Graph& g, const Node& n, int64_t rows) {
  auto shape = [&](ValueId v) -> const Shape& { return g.info(v).type.shape; };
  auto has_rows = [&](ValueId v) { return !shape(v).empty() && shape(v)[0] == rows; };
  Use use{.cut = std::vector<bool>(n.inputs.size())};
  if (is_one_of(n.op, {&matmul_op, &quantized_matmul_op})) return use_of_product(g, n, rows);
  if (n.op->elementwise() || n.op == &broadcast_op) {
    const ValueId y = n.results[0];
    for (size_t i = 0; i < n.inputs.size(); ++i)
      use.cut[i] = has_rows(n.inputs[i]) && shape(n.inputs[i]).size() == shape(y).size();
    use.of = has_rows(y) ? Use::rows : Use::other;
    return use;
  }
  const size_t rank = n.inputs.empty() ? 0 : shape(n.inputs[0]).size();
  if (rank == 0 || !has_rows(n.inputs[0])) return use;
  use.cut.assign(n.inputs.size(), true);
  if (n.op == &reshape_op) {
    use.of = has_rows(n.results[0]) ? Use::rows : Use::other;
  } else if (is_one_of(n.op, {&softmax_op, &log_softmax_op})) {
    use.of = normalize_axis(n.attrs.i("axis"), rank) != 0 ? Use::rows : Use::other;
  } else if (n.op == &cross_entropy_op) {
    const std::string& reduction = n.attrs.text("reduction");
    use.of = reduction == "none" ? Use::rows : reduction == "sum" ? Use::sum : Use::other;
  } else if (is_one_of(n.op, {&sum_op, &max_op, &min_op, &mean_op, &argmax_op, &logsumexp_op})) {
    const std::vector<int64_t> axes = normalize_axes(n.attrs.ints("axes"), rank);
    const bool over = axes.empty() || std::ranges::count(axes, 0) > 0;
    use.of = !over ? Use::rows : n.op == &sum_op ? Use::sum : Use::other;
  }
  return use;
}

/// The nodes that run in parts, from the product of some logits to the sums of their loss and gradients.
class Region {
 public:
  Region(const Graph& g, ValueId logits)
      : g_(g),
        rows_(g.info(logits).type.shape[0]),
        wide_(num_elements(g.info(logits).type.shape)),
        inside_(g.nodes().size()),
        sums_(g.nodes().size()),
        leaves_(g.values().size()) {
    for (const Node& n : g.nodes()) uses_.push_back(use_of(g, n, rows_));
    found_ = made_by_product(logits) && complete() && closed();
  }

  bool found() const { return found_; }
  int64_t rows() const { return rows_; }
  const Use& use(uint32_t k) const { return uses_[k]; }
  bool contains(uint32_t k) const { return inside_[k] || sums_[k]; }
  bool sums(uint32_t k) const { return sums_[k]; }
  /// Whether something outside needs the value of all rows.
  bool leaves(ValueId v) const { return leaves_[v]; }

 private:
  bool wide(ValueId v) const { return num_elements(g_.info(v).type.shape) >= wide_; }
  bool by_region(ValueId v) const { return g_.info(v).producer != no_id && inside_[g_.info(v).producer]; }
  /// Whether each part has its rows of the value; of a product of the region's rows, only all rows are read.
  bool made(ValueId v) const {
    if (!by_region(v)) return false;
    const uint32_t k = g_.info(v).producer;
    return !uses_[k].product || !by_region(g_.nodes()[k].inputs[0]);
  }

  /// Takes what computes a value as large as the logits, back to products.
  bool take_back(ValueId v) {
    const uint32_t k = g_.info(v).producer;
    if (k == no_id || uses_[k].of != Use::rows) return false;
    if (inside_[k]) return true;
    inside_[k] = true;
    if (uses_[k].product) return true;
    const Node& n = g_.nodes()[k];
    for (size_t i = 0; i < n.inputs.size(); ++i)
      if (uses_[k].cut[i] && wide(n.inputs[i]) && !take_back(n.inputs[i])) return false;
    return true;
  }

  bool made_by_product(ValueId logits) {
    if (!take_back(logits)) return false;
    for (uint32_t k = 0; k < inside_.size(); ++k)
      if (inside_[k] && uses_[k].product) return true;
    return false;
  }

  /// Takes the nodes that read rows of the region, and what is as large as the logits and read by these.
  bool complete() {
    for (bool more = true; more;) {
      more = false;
      for (uint32_t k = 0; k < g_.nodes().size(); ++k) {
        if (contains(k)) continue;
        std::optional<bool> joined = join(k);
        if (!joined) return false;
        more = more || *joined;
      }
    }
    return true;
  }

  /// Whether node k joined; nothing if it keeps the logits whole.
  std::optional<bool> join(uint32_t k) {
    const Node& n = g_.nodes()[k];
    if (std::ranges::none_of(n.inputs, [&](ValueId v) { return made(v); })) return false;
    bool fits = uses_[k].of != Use::other;
    for (size_t i = 0; i < n.inputs.size(); ++i) fits = fits && (uses_[k].cut[i] || !made(n.inputs[i]));
    if (!fits)
      return std::ranges::any_of(n.inputs, [&](ValueId v) { return made(v) && wide(v); }) ? std::nullopt
                                                                                          : std::optional(false);
    (uses_[k].of == Use::sum ? sums_ : inside_)[k] = true;
    for (size_t i = 0; i < n.inputs.size() && !uses_[k].product; ++i) {
      const ValueId v = n.inputs[i];
      if (uses_[k].cut[i] && wide(v) && !by_region(v) && !take_back(v)) return {};
    }
    return true;
  }

  /// Whether no node of the region needs results of all rows; finds what leaves the region.
  bool closed() {
    std::vector<bool> late(g_.values().size());  // depends on results of the region
    auto leave = [&](ValueId v) {
      if (made(v) && wide(v)) return false;
      leaves_[v] = leaves_[v] || by_region(v);
      return true;
    };
    for (uint32_t k = 0; k < g_.nodes().size(); ++k) {
      const Node& n = g_.nodes()[k];
      for (ValueId v : n.inputs) {
        if (contains(k) && (late[v] || (by_region(v) && !made(v)))) return false;
        if (!contains(k) && !leave(v)) return false;
      }
      bool after = sums_[k];
      if (!contains(k)) after = std::ranges::any_of(n.inputs, [&](ValueId v) { return late[v] || by_region(v); });
      for (ValueId v : n.results) late[v] = after;
    }
    return std::ranges::all_of(g_.states(), [&](const State& s) { return s.after == no_id || leave(s.after); });
  }

  const Graph& g_;
  int64_t rows_, wide_;
  std::vector<Use> uses_;            // per node
  std::vector<bool> inside_, sums_;  // per node
  std::vector<bool> leaves_;         // per value
  bool found_ = false;
};

/// Writes the graph with the region in parts.
class LossDivider {
 public:
  LossDivider(const Graph& g, const Region& region, int64_t parts)
      : g_(g), region_(region), parts_(parts), r_(g), done_(g.nodes().size()), needed_(g.nodes().size()) {
    for (uint32_t k = static_cast<uint32_t>(needed_.size()); k-- > 0;)
      if (needed_[k] || region_.contains(k))
        for (ValueId v : g.nodes()[k].inputs)
          if (uint32_t p = g.info(v).producer; p != no_id) needed_[p] = true;
  }

  Graph run() {
    for (uint32_t k = 0; k < g_.nodes().size(); ++k) {
      if (region_.contains(k)) continue;
      if (!divided_ && std::ranges::any_of(g_.nodes()[k].inputs, [&](ValueId v) { return of_region(v); })) divide();
      copy(k);
    }
    if (!divided_) divide();
    return r_.finish();
  }

 private:
  bool of_region(ValueId v) const {
    const uint32_t k = g_.info(v).producer;
    return k != no_id && region_.contains(k);
  }

  void copy(uint32_t k) {
    if (!done_[k]) r_.copy(g_.nodes()[k]);
    done_[k] = true;
  }

  /// Adds all parts, and before them what they read.
  void divide() {
    divided_ = true;
    for (uint32_t k = 0; k < g_.nodes().size(); ++k)
      if (needed_[k] && !region_.contains(k)) copy(k);
    const int64_t each = (region_.rows() + parts_ - 1) / parts_;
    for (int64_t first = 0; first < region_.rows(); first += each) part(first, std::min(first + each, region_.rows()));
    for (auto& [v, list] : rows_) {
      r_.to().set_origin(g_.nodes()[g_.info(v).producer]);
      r_.set(v, concat(list, 0));
    }
    for (auto& [v, total] : totals_) finish(v, total);
  }

  void part(int64_t first, int64_t end) {
    std::map<ValueId, Value> here;  // old values to those of this part
    for (uint32_t k = 0; k < g_.nodes().size(); ++k) {
      if (!region_.contains(k)) continue;
      const Node& n = g_.nodes()[k];
      const Use& use = region_.use(k);
      r_.to().set_origin(n);
      Values in;
      for (size_t i = 0; i < n.inputs.size(); ++i) {
        const ValueId v = n.inputs[i];
        if (use.cut[i] && !here.contains(v)) here[v] = slice_axis(r_[v], 0, first, end);
        in.push_back(use.cut[i] ? here.at(v) : r_[v]);
      }
      Attrs attrs = n.attrs;
      if (n.op == &reshape_op || n.op == &broadcast_op) {
        Shape shape = g_.info(n.results[0]).type.shape;
        shape[0] = end - first;
        attrs.set("shape", shape);
      }
      Values out = r_.to().add(*n.op, in, attrs);
      for (size_t i = 0; i < out.size(); ++i) {
        const ValueId v = n.results[i];
        if (region_.sums(k)) {
          add(v, out[i]);
          continue;
        }
        here[v] = out[i];
        if (region_.leaves(v)) rows_[v].push_back(out[i]);
      }
    }
  }

  void add(ValueId v, Value x) {
    if (is_float(x.dtype()) && size_of(x.dtype()) == 2) x = cast(x, DType::f32);
    auto [at, fresh] = totals_.try_emplace(v, x);
    if (!fresh) at->second = at->second + x;
  }

  /// Gives the readers of a sum their value; those that widen it read the wider one.
  void finish(ValueId v, Value total) {
    const DType type = g_.info(v).type.dtype;
    r_.to().set_origin(g_.nodes()[g_.info(v).producer]);
    if (total.dtype() == type) return r_.set(v, total);
    for (uint32_t k = 0; k < g_.nodes().size(); ++k) {
      const Node& n = g_.nodes()[k];
      if (n.op != &cast_op || n.inputs[0] != v || g_.info(n.results[0]).type.dtype != total.dtype()) continue;
      r_.set(n.results[0], total);
      done_[k] = true;
    }
    r_.set(v, cast(total, type));
  }

  const Graph& g_;
  const Region& region_;
  int64_t parts_;
  Rewriter r_;
  std::vector<bool> done_, needed_;  // per node: copied; read by the region, directly or not
  bool divided_ = false;
  std::map<ValueId, Values> rows_;   // the parts of what leaves the region
  std::map<ValueId, Value> totals_;  // the sums
};

/// At least as many parts as needed; more if they are then equal.
int64_t parts_of(int64_t rows, int64_t classes, int64_t most) {
  const int64_t each = std::max<int64_t>(most / classes, 1), least = (rows + each - 1) / each;
  for (int64_t parts = least; parts < 2 * least && parts <= rows; ++parts)
    if (rows % parts == 0) return parts;
  return least;
}

/// The logits if the node is a loss over more than `most` of them; else no_id.
ValueId large_logits(const Graph& g, const Node& n, int64_t most) {
  if (!is_one_of(n.op, {&cross_entropy_op, &log_softmax_op, &logsumexp_op})) return no_id;
  const Shape& shape = g.info(n.inputs[0]).type.shape;
  return shape.size() == 2 && shape[0] > 1 && num_elements(shape) > most ? n.inputs[0] : no_id;
}

/// The same graph with reshapes of large values behind the elementwise nodes that read these and scalars: a language
/// model's logits [batch, tokens, classes] have their rows again.
Graph with_reshapes_last(const Graph& g, int64_t most) {
  Rewriter r(g);
  for (const Node& n : g.nodes()) {
    Values in = r.map(n.inputs);
    Value* reshaped = nullptr;
    bool one = n.op->elementwise() && n.results.size() == 1 && num_elements(g.info(n.results[0]).type.shape) > most;
    for (Value& v : in) {
      if (v.rank() == 0) continue;
      const uint32_t k = r.to().info(v.id()).producer;
      one = one && !reshaped && k != no_id && r.to().nodes()[k].op == &reshape_op;
      reshaped = &v;
    }
    if (!one || !reshaped) {
      r.copy(n);
      continue;
    }
    const Shape shape = reshaped->shape();
    *reshaped = r.to().value(r.to().nodes()[r.to().info(reshaped->id()).producer].inputs[0]);
    r.to().set_origin(n);
    r.set(n.results[0], reshape(r.to().add(*n.op, in, n.attrs)[0], shape));
  }
  return r.finish();
}

bool has_large_logits(const Graph& g, int64_t most) {
  return std::ranges::any_of(g.nodes(), [&](const Node& n) { return large_logits(g, n, most) != no_id; });
}

/// With the first logits that can be divided in parts.
std::optional<Graph> divided(const Graph& g, int64_t most) {
  for (const Node& n : g.nodes()) {
    const ValueId logits = large_logits(g, n, most);
    if (logits == no_id) continue;
    const Shape& shape = g.info(logits).type.shape;
    const Region region(g, logits);
    if (region.found()) return dce(LossDivider(g, region, parts_of(shape[0], shape[1], most)).run());
  }
  return {};
}

}  // namespace

Graph loss_in_parts(Graph g, int64_t most) {
  if (!has_large_logits(g, most)) return g;
  std::optional<Graph> now = divided(dce(simplify(with_reshapes_last(dce(simplify(g)), most))), most);
  if (!now) return g;
  while (std::optional<Graph> more = divided(*now, most)) now = std::move(more);
  return std::move(*now);
}

}  // namespace tutti
