#include "graph/intervals.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "graph/op.h"

namespace tutti {
namespace {

using Known = std::optional<Interval>;
constexpr Interval truth = {0, 1};

Interval hull(Interval a, Interval b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }
Known hull(const Known& a, const Known& b) { return a && b ? Known(hull(*a, *b)) : std::nullopt; }

/// The interval of f over a and b, if f is monotonic in each argument.
template <class F>
Interval corners(Interval a, Interval b, F f) {
  auto [low, high] = std::minmax({f(a.low, b.low), f(a.low, b.high), f(a.high, b.low), f(a.high, b.high)});
  return {low, high};
}

/// Truncating division; 0 for division by 0.
Interval quotient(Interval a, Interval b) {
  Known y;
  auto add = [&](double low, double high) {
    if (low > high) return;
    Interval part = corners(a, {low, high}, [](double p, double q) { return std::trunc(p / q); });
    y = y ? hull(*y, part) : part;
  };
  add(b.low, std::min(b.high, -1.0));
  add(std::max(b.low, 1.0), b.high);
  if (b.low <= 0 && b.high >= 0) y = y ? hull(*y, {0, 0}) : Interval{0, 0};
  return *y;
}

/// The interval of the floored (sign of b) or truncated (sign of a) remainder; a where b is 0.
Interval rest(Interval a, Interval b, bool floored) {
  double most = std::max(std::abs(b.low), std::abs(b.high)) - 1;
  Interval y{0, 0};
  if (floored ? b.low < 0 : a.low < 0) y.low = floored ? b.low + 1 : std::max(-most, a.low);
  if (floored ? b.high > 0 : a.high > 0) y.high = floored ? b.high - 1 : std::min(most, a.high);
  if (floored && a.low >= 0 && b.low >= 0) y.high = std::min(y.high, a.high);
  return b.low <= 0 && b.high >= 0 ? hull(y, a) : y;
}

/// The smallest 2^k - 1 >= x.
double ones(double x) { return std::exp2(std::ceil(std::log2(x + 1))) - 1; }

Known bitwise(uint16_t code, const Known& a, const Known& b) {
  auto positive = [](const Known& x) { return x && x->low >= 0; };
  if (code == TUTTI_X_AND) {
    if (positive(a) && positive(b)) return Interval{0, std::min(a->high, b->high)};
    if (positive(a) || positive(b)) return Interval{0, positive(a) ? a->high : b->high};
  }
  if (!a || !b) return {};
  if (positive(a) && positive(b)) return Interval{0, ones(std::max(a->high, b->high))};
  double most = ones(std::max({-a->low - 1, a->high, -b->low - 1, b->high, 0.0}));
  return Interval{-most - 1, most};
}

Known comparison(uint16_t code, const Known& a, const Known& b) {
  if (!a || !b) return truth;
  bool orequal = code == TUTTI_X_LESS_EQUAL;
  if (code == TUTTI_X_EQUAL) return a->high < b->low || b->high < a->low ? Interval{0, 0} : truth;
  if (orequal ? a->high <= b->low : a->high < b->low) return Interval{1, 1};
  if (orequal ? a->low > b->high : a->low >= b->high) return Interval{0, 0};
  return truth;
}

Known shifted(uint16_t code, Interval a, Interval b) {
  if (b.low < 0 || b.high > 31) return {};
  double sign = code == TUTTI_X_SHL ? 1 : -1;
  return corners(a, b, [&](double p, double q) { return std::floor(std::ldexp(p, static_cast<int>(sign * q))); });
}

Known binary(uint16_t code, DType t, const Known& a, const Known& b) {
  if (code == TUTTI_X_AND || code == TUTTI_X_OR || code == TUTTI_X_XOR) return bitwise(code, a, b);
  if (code == TUTTI_X_MIN || code == TUTTI_X_MAX) {
    Known p = a ? a : range_of(t), q = b ? b : range_of(t);
    if (!p || !q || (!a && !b)) return {};
    return code == TUTTI_X_MIN ? Interval{std::min(p->low, q->low), std::min(p->high, q->high)}
                               : Interval{std::max(p->low, q->low), std::max(p->high, q->high)};
  }
  if (!a || !b) return {};
  switch (code) {
    case TUTTI_X_ADD: return Interval{a->low + b->low, a->high + b->high};
    case TUTTI_X_SUB: return Interval{a->low - b->high, a->high - b->low};
    case TUTTI_X_MUL: return corners(*a, *b, [](double p, double q) { return p * q; });
    case TUTTI_X_DIV: return quotient(*a, *b);
    case TUTTI_X_SHL:
    case TUTTI_X_SHR: return shifted(code, *a, *b);
    default: return {};
  }
}

Known unary(uint16_t code, const Known& a) {
  if (!a) return {};
  switch (code) {
    case TUTTI_X_NEG: return Interval{-a->high, -a->low};
    case TUTTI_X_ABS: return a->low >= 0 ? *a : Interval{a->high > 0 ? 0 : -a->high, std::max(-a->low, a->high)};
    case TUTTI_X_FLOOR: return *a;
    default: return {};
  }
}

/// The intervals of an elementwise op's results.
std::vector<Known> of_expression(const Expr& e, const std::vector<Known>& in) {
  std::vector<Known> at(e.code.size()), results(e.results.size());
  for (size_t k = 0; k < e.code.size(); ++k) {
    const TuttiInstr& i = e.code[k];
    auto t = static_cast<DType>(i.dtype);
    bool from_float = i.code > TUTTI_X_RESULT && is_float(static_cast<DType>(e.code[i.a].dtype));
    switch (i.code) {
      case TUTTI_X_INPUT: at[k] = in[i.a]; break;
      case TUTTI_X_RESULT: results[i.b] = at[i.a]; break;
      case TUTTI_X_CONST:
        if (double x = round_to(t, constant_of(i)); !is_float(t)) at[k] = Interval{x, x};
        break;
      case TUTTI_X_LESS:
      case TUTTI_X_LESS_EQUAL:
      case TUTTI_X_EQUAL: at[k] = comparison(i.code, at[i.a], at[i.b]); break;
      case TUTTI_X_SELECT:
        if (at[i.a] && at[i.a]->low == at[i.a]->high)
          at[k] = at[at[i.a]->low != 0 ? i.b : i.c];
        else
          at[k] = hull(at[i.b], at[i.c]);
        break;
      case TUTTI_X_CAST:
        if (t == DType::boolean)
          at[k] = truth;
        else if (Known range = range_of(t); range && !from_float && at[i.a])  // clamps
          at[k] = Interval{std::clamp(at[i.a]->low, range->low, range->high),
                           std::clamp(at[i.a]->high, range->low, range->high)};
        break;
      default:
        if (t == DType::boolean)
          at[k] = truth;
        else if (!is_float(t))
          at[k] = operand_count(i.code) > 1 ? binary(i.code, t, at[i.a], at[i.b]) : unary(i.code, at[i.a]);
    }
  }
  return results;
}

double count(const Shape& s) { return static_cast<double>(num_elements(s)); }

/// Sums of 0 to n numbers in x.
Interval sums(Interval x, double n) { return {std::min(0.0, n * x.low), std::max(0.0, n * x.high)}; }

/// Products of up to n numbers in x.
Interval products(Interval x, double n) {
  double most = std::pow(std::max({1.0, std::abs(x.low), std::abs(x.high)}), n);
  return {x.low >= 0 ? 0 : -most, most};
}

class Analysis {
 public:
  Analysis(const Graph& g, const std::map<ValueId, Interval>& inputs) : g_(g), at_(g.values().size()) {
    for (ValueId id = 0; id < at_.size(); ++id) {
      const ValueInfo& v = g.info(id);
      if (auto it = inputs.find(id); it != inputs.end())
        at_[id] = it->second;
      else if (v.role == Role::constant)
        at_[id] = of_constant(v);
      else if (v.role != Role::temp)
        at_[id] = range_of(v.type.dtype);
    }
  }

  std::vector<Known> run() {
    for (const Node& n : g_.nodes()) {
      std::vector<Known> in;
      for (ValueId id : n.inputs) in.push_back(held(id));
      std::vector<Known> out = results(n, in);
      for (size_t k = 0; k < n.results.size(); ++k) {
        DType t = g_.info(n.results[k]).type.dtype;
        at_[n.results[k]] = t == DType::boolean ? truth_of(out[k]) : is_float(t) ? Known() : out[k];
      }
    }
    return std::move(at_);
  }

 private:
  static Known truth_of(const Known& x) { return x && x->low >= 0 && x->high <= 1 ? x : Known(truth); }

  static Known of_constant(const ValueInfo& v) {
    int64_t n = num_elements(v.type.shape);
    if (is_float(v.type.dtype) || n == 0) return range_of(v.type.dtype);
    double first = load_element(v.type.dtype, v.data.data(), 0);
    Interval y{first, first};
    for (int64_t i = 1; i < n; ++i) {
      double x = load_element(v.type.dtype, v.data.data(), static_cast<size_t>(i));
      y = hull(y, {x, x});
    }
    return y;
  }

  /// The value of an operand on the device: if it may have wrapped, any value of the dtype.
  Known held(ValueId id) const {
    Known range = range_of(g_.info(id).type.dtype);
    const Known& x = at_[id];
    return x && range && (x->low < range->low || x->high > range->high) ? range : x;
  }

  const Shape& shape(ValueId id) const { return g_.info(id).type.shape; }

  std::vector<Known> results(const Node& n, const std::vector<Known>& in) const {
    std::string_view op = n.op->name;
    DType t = g_.info(n.results[0]).type.dtype;
    if ((op == "remainder" || op == "fmod") && in[0] && in[1]) return {rest(*in[0], *in[1], op == "remainder")};
    if (n.op->elementwise()) {
      std::vector<DType> dtypes;
      for (ValueId id : n.inputs) dtypes.push_back(g_.info(id).type.dtype);
      return of_expression(expr_of(*n.op, dtypes, n.attrs), in);
    }
    std::vector<Known> out(n.results.size());
    if (!is_float(t) && t != DType::boolean) out[0] = whole(n, op, in);
    if (op == "sort") out = {in[0], Interval{0, std::max(0.0, count(shape(n.inputs[0])) - 1)}};
    return out;
  }

  /// Ops that move, select, count and add integers.
  Known whole(const Node& n, std::string_view op, const std::vector<Known>& in) const {
    for (std::string_view same :
         {"reshape", "transpose", "slice", "broadcast", "flip", "gather", "take_along_axis", "max", "min"})
      if (op == same) return in[0];
    const Shape& y = shape(n.results[0]);
    auto share = [&] { return count(y) > 0 ? count(shape(n.inputs[0])) / count(y) : 0; };
    auto along = [&] {
      const Shape& x = shape(n.inputs[0]);
      return static_cast<double>(x[static_cast<size_t>(normalize_axis(n.attrs.i("axis"), x.size()))]);
    };
    if (op == "concat") {
      Known all = in[0];
      for (const Known& x : in) all = hull(all, x);
      return all;
    }
    if (op == "pad") return hull(in[0], Known(Interval{n.attrs.f("value"), n.attrs.f("value")}));
    if (op == "iota") {
      auto size = static_cast<double>(y[static_cast<size_t>(normalize_axis(n.attrs.i("axis"), y.size()))]);
      return Interval{0, std::max(0.0, size - 1)};
    }
    if (op == "argmax") return Interval{0, std::max(0.0, share() - 1)};
    if (op == "sum" && in[0]) return share() == 1 ? in[0] : sums(*in[0], share());
    if (op == "cumsum" && in[0]) return sums(*in[0], along());
    if (op == "prod" && in[0]) return products(*in[0], share());
    if (op == "cumprod" && in[0]) return products(*in[0], along());
    if ((op == "scatter_add" || op == "add_along_axis") && in[1]) return sums(*in[1], count(shape(n.inputs[0])));
    return {};
  }

  const Graph& g_;
  std::vector<Known> at_;
};

}  // namespace

std::optional<Interval> range_of(DType t) {
  switch (t) {
    case DType::boolean: return truth;
    case DType::u8: return Interval{0, 255};
    case DType::i32: return Interval{-2147483648.0, 2147483647.0};
    case DType::u32: return Interval{0, 4294967295.0};
    case DType::i64: return Interval{-0x1p63, 0x1p63};
    default: return {};
  }
}

std::vector<std::optional<Interval>> intervals(const Graph& g, const std::map<ValueId, Interval>& inputs) {
  return Analysis(g, inputs).run();
}

}  // namespace tutti
