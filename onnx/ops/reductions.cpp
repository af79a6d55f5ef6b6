// Reductions, argmax, sorting and scans.
#include <cmath>
#include <functional>
#include <limits>

#include "graph/ops.h"
#include "onnx/handler.h"

namespace tutti::onnx {
namespace {

using Reduce = std::function<Value(Value x, const Ints& axes, bool keep)>;

/// `axes` are an input since opset 18 (13 for ReduceSum). Without axes reduces over all, or with noop_with_empty_axes
/// over none; `f` is then applied to each element alone.
void add_reduction(Table& t, const std::string& name, const Reduce& f) {
  t[name] = [f](const Context& c) {
    Value x = c.in(0);
    bool keep = c.i("keepdims", 1) != 0;
    Ints axes = c.integers_or_attribute(1, "axes").value_or(Ints{});
    for (int64_t& a : axes) a = axis_of(c, a, x.rank());
    if (!axes.empty() || c.i("noop_with_empty_axes", 0) == 0) return Values{f(x, axes, keep)};
    Shape shape = x.shape();
    shape.push_back(1);  // as an axis of one element
    return Values{f(reshape(x, shape), {static_cast<int64_t>(x.rank())}, false)};
  };
}

/// The largest or smallest element; also for integers and bool.
Value extreme(Value x, const Ints& axes, bool keep, bool largest) {
  DType dtype = x.dtype();
  bool nothing = axes.empty() && num_elements(x.shape()) == 0;
  for (int64_t a : axes) nothing = nothing || x.shape()[static_cast<size_t>(a)] == 0;
  if (nothing) {  // the limit of the dtype's range
    Value y = sum(is_float(dtype) ? x : cast(x, DType::f32), axes, keep);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    Value end = is_float(dtype) ? y.graph().full(dtype, largest ? -infinity : infinity)
                                : y.graph().full(dtype, round_to(dtype, largest ? -infinity : infinity));
    return broadcast(end, y.shape());
  }
  if (dtype == DType::boolean || dtype == DType::u8) x = cast(x, DType::i32);
  return cast(largest ? max(x, axes, keep) : min(x, axes, keep), dtype);
}

Values arg(const Context& c, bool largest) {
  Value x = c.in(0);
  int64_t axis = axis_of(c, c.i("axis", 0), x.rank());
  bool keep = c.i("keepdims", 1) != 0, last = c.i("select_last_index", 0) != 0;
  if (!is_float(x.dtype())) x = cast(x, DType::f32);
  if (last) x = flip(x, {axis});
  Value y = largest ? argmax(x, {axis}, keep) : argmin(x, {axis}, keep);
  return {last ? static_cast<double>(x.shape()[static_cast<size_t>(axis)] - 1) - y : y};
}

Values cumulative(const Context& c) {
  Value x = c.in(0);
  int64_t axis = axis_of(c, c.integer(1, "axis"), x.rank());
  bool reverse = c.i("reverse", 0) != 0;
  Value y = cumsum(x, axis, reverse);
  if (c.i("exclusive", 0) == 0) return {y};
  Ints low(x.rank()), high(x.rank());
  (reverse ? high : low)[static_cast<size_t>(axis)] = 1;
  int64_t size = x.shape()[static_cast<size_t>(axis)];
  return {narrow(pad(y, low, high, Ints(x.rank())), axis, reverse ? 1 : 0, size)};
}

/// Softmax and similar ops: over one axis since opset 13; before, over all axes starting with that axis.
Value over_axis(const Context& c, const std::function<Value(Value, int64_t)>& f) {
  Value x = c.in(0);
  if (c.opset() >= 13) return f(x, axis_of(c, c.i("axis", -1), x.rank()));
  int64_t axis = axis_of(c, c.i("axis", 1), x.rank()), rows = 1;
  for (int64_t k = 0; k < axis; ++k) rows *= x.shape()[static_cast<size_t>(k)];
  return reshape(f(reshape(x, {rows, -1}), 1), x.shape());
}

Value hardmax(Value x, int64_t axis) {
  Value hot = one_hot(argmax(x, {axis}), x.shape()[static_cast<size_t>(axis)], x.dtype());
  return movedim(hot, {-1}, {axis});
}

}  // namespace

void add_reductions(Table& t) {
  add_reduction(t, "ReduceL1", [](Value x, const Ints& axes, bool keep) { return sum(abs(x), axes, keep); });
  add_reduction(t, "ReduceL2", [](Value x, const Ints& axes, bool keep) {
    if (is_float(x.dtype())) return norm(x, 2, axes, keep);
    return cast(sqrt(as_float(sum(x * x, axes, keep))), x.dtype());
  });
  add_reduction(t, "ReduceLogSum", [](Value x, const Ints& axes, bool keep) {
    return cast(log(as_float(sum(x, axes, keep))), x.dtype());
  });
  add_reduction(t, "ReduceLogSumExp", [](Value x, const Ints& axes, bool keep) {
    return cast(logsumexp(as_float(x), axes, keep), x.dtype());
  });
  add_reduction(t, "ReduceMax", [](Value x, const Ints& axes, bool keep) { return extreme(x, axes, keep, true); });
  add_reduction(t, "ReduceMin", [](Value x, const Ints& axes, bool keep) { return extreme(x, axes, keep, false); });
  add_reduction(t, "ReduceMean",
                [](Value x, const Ints& axes, bool keep) { return cast(mean(as_float(x), axes, keep), x.dtype()); });
  add_reduction(t, "ReduceProd", [](Value x, const Ints& axes, bool keep) { return prod(x, axes, keep); });
  add_reduction(t, "ReduceSum", [](Value x, const Ints& axes, bool keep) { return sum(x, axes, keep); });
  add_reduction(t, "ReduceSumSquare", [](Value x, const Ints& axes, bool keep) { return sum(x * x, axes, keep); });
  t["ArgMax"] = [](const Context& c) { return arg(c, true); };
  t["ArgMin"] = [](const Context& c) { return arg(c, false); };
  t["CumSum"] = cumulative;
  t["Softmax"] = [](const Context& c) {
    return Values{over_axis(c, [](Value x, int64_t axis) { return softmax(x, axis); })};
  };
  t["LogSoftmax"] = [](const Context& c) {
    return Values{over_axis(c, [](Value x, int64_t axis) { return log_softmax(x, axis); })};
  };
  t["Hardmax"] = [](const Context& c) { return Values{over_axis(c, hardmax)}; };
  t["TopK"] = [](const Context& c) {
    Value x = c.in(0);
    int64_t k = c.opset() < 10 ? c.i("k", 0) : c.integer(1, "k");
    return top_k(x, k, axis_of(c, c.i("axis", -1), x.rank()), c.i("largest", 1) != 0);
  };
}

}  // namespace tutti::onnx
