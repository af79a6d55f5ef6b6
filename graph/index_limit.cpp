#include "graph/index_limit.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "graph/op.h"

namespace tutti {
namespace {

/// How a value is derived from x.
struct Form {
  int64_t from_end = 0;  ///< n: numbers in [-n, -1] were mapped to [0, n - 1]
  std::optional<int64_t> except = {};
};

class Search {
 public:
  Search(const Graph& g, Value x) : g_(g) { forms_[x.id()] = {}; }

  std::optional<Limit> run() {
    for (const Node& n : g_.nodes()) {
      moves(n);
      if (n.op->name == "select") choice(n);
      use(n);
    }
    return limit_;
  }

 private:
  const Form* form(ValueId id) const {
    auto it = forms_.find(id);
    return it == forms_.end() ? nullptr : &it->second;
  }
  const Shape& shape(ValueId id) const { return g_.info(id).type.shape; }

  /// The value of a constant with equal elements.
  std::optional<int64_t> number(ValueId id) const {
    const ValueInfo& v = g_.info(id);
    if (v.role == Role::temp) {  // a constant, broadcast
      const Node* n = producer(id);
      return n && (n->op->name == "broadcast" || n->op->name == "reshape") ? number(n->inputs[0]) : std::nullopt;
    }
    if (v.role != Role::constant || !is_integer(v.type.dtype) || num_elements(v.type.shape) != 1) return {};
    return static_cast<int64_t>(load_element(v.type.dtype, v.data.data(), 0));
  }

  const Node* producer(ValueId id) const {
    uint32_t at = g_.info(id).producer;
    return at == no_id ? nullptr : &g_.nodes()[at];
  }

  void moves(const Node& n) {
    constexpr std::array<std::string_view, 6> same = {"reshape", "transpose", "slice", "broadcast", "flip", "gather"};
    if (std::ranges::find(same, n.op->name) == same.end()) return;
    if (const Form* f = form(n.inputs[0])) forms_[n.results[0]] = *f;
  }

  /// select(x < 0, x + n, x), select(x == k, constant, x) and select(!(x == k), x, constant).
  void choice(const Node& n) {
    const Node* condition = producer(n.inputs[0]);
    if (!condition) return;
    bool negated = condition->op->name == "logical_not";
    if (negated) condition = producer(condition->inputs[0]);
    if (!condition || condition->inputs.size() != 2) return;
    ValueId x = n.inputs[negated ? 1 : 2], other = n.inputs[negated ? 2 : 1];
    const Form* f = form(x);
    std::optional<int64_t> bound = number(condition->inputs[1]);
    if (!f || condition->inputs[0] != x || !bound) return;
    Form made = *f;
    if (condition->op->name == "equal" && number(other)) {
      made.except = bound;
    } else if (condition->op->name == "less" && bound == 0 && !negated) {
      const Node* sum = producer(other);
      std::optional<int64_t> size =
          sum && sum->op->name == "add" && sum->inputs[0] == x ? number(sum->inputs[1]) : std::nullopt;
      if (!size || (f->from_end != 0 && f->from_end != *size)) return;
      made.from_end = *size;
    } else {
      return;
    }
    forms_[n.results[0]] = made;
  }

  void use(const Node& n) {
    std::string_view op = n.op->name;
    auto axis_of = [&](ValueId id) {
      return shape(id)[static_cast<size_t>(normalize_axis(n.attrs.i("axis"), shape(id).size()))];
    };
    if (op == "gather" || op == "take_along_axis")
      need(n, 1, axis_of(n.inputs[0]), {});
    else if (op == "embedding")
      need(n, 1, shape(n.inputs[0])[0], {});
    else if (op == "scatter_add" || op == "add_along_axis")
      need(n, 0, n.attrs.i("size"), {});
    else if (op == "cross_entropy")
      need(n, 1, shape(n.inputs[0])[1], n.attrs.i("ignore_index"));
  }

  void need(const Node& n, size_t input, int64_t size, std::optional<int64_t> except) {
    const Form* f = form(n.inputs[input]);
    if (!f) return;
    Limit own{.low = f->from_end == size ? -size : 0, .end = size, .except = f->except ? f->except : except};
    limit_ = limit_ ? *limit_ & own : own;
  }

  const Graph& g_;
  std::map<ValueId, Form> forms_;
  std::optional<Limit> limit_;
};

}  // namespace

std::optional<Limit> index_limit(const Graph& g, Value x) { return Search(g, x).run(); }

}  // namespace tutti
