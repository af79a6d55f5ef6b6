#include "graph/passes/channels_last.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/geometry/conv.h"
#include "core/geometry/copy.h"
#include "core/geometry/reduction.h"
#include "graph/conv.h"
#include "graph/ops/avg_pool2d.h"
#include "graph/ops/avg_pool2d_dx.h"
#include "graph/ops/avg_pool2d_nhwc.h"
#include "graph/ops/avg_pool2d_nhwc_dx.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/concat.h"
#include "graph/ops/conv2d.h"
#include "graph/ops/conv2d_dw.h"
#include "graph/ops/conv2d_dx.h"
#include "graph/ops/conv2d_nhwc.h"
#include "graph/ops/conv2d_nhwc_dw.h"
#include "graph/ops/conv2d_nhwc_dx.h"
#include "graph/ops/max.h"
#include "graph/ops/max_pool2d.h"
#include "graph/ops/max_pool2d_dx.h"
#include "graph/ops/max_pool2d_nhwc.h"
#include "graph/ops/max_pool2d_nhwc_dx.h"
#include "graph/ops/mean.h"
#include "graph/ops/min.h"
#include "graph/ops/pad.h"
#include "graph/ops/prod.h"
#include "graph/ops/reshape.h"
#include "graph/ops/slice.h"
#include "graph/ops/sum.h"
#include "graph/ops/transpose.h"
#include "graph/passes/rewrite.h"

namespace tutti {
namespace {

/// Axis d of a channels-last value is axis `order[d]` of the value; axis d of the value is axis `place[d]`.
constexpr std::array<size_t, 4> order = {0, 2, 3, 1}, place = {0, 3, 1, 2};

const OpDef* channels_last_convolution(const OpDef* op) {
  return op == &conv2d_op      ? &conv2d_nhwc_op
         : op == &conv2d_dx_op ? &conv2d_nhwc_dx_op
         : op == &conv2d_dw_op ? &conv2d_nhwc_dw_op
                               : nullptr;
}

bool reduces(const OpDef* op) {
  return op == &sum_op || op == &mean_op || op == &max_op || op == &min_op || op == &prod_op;
}

/// Per-axis numbers in channels-last order; an empty list stays empty.
Ints in_order(const Ints& numbers) {
  Ints moved = numbers;
  for (size_t d = 0; d < 4 && numbers.size() == 4; ++d) moved[d] = numbers[order[d]];
  return moved;
}

/// Whether both layouts have their elements in the same order.
bool either(const Shape& first) { return first[1] == 1 || first[2] * first[3] == 1; }

const OpDef* channels_last_pool(const OpDef* op) {
  return op == &max_pool2d_op      ? &max_pool2d_nhwc_op
         : op == &max_pool2d_dx_op ? &max_pool2d_nhwc_dx_op
         : op == &avg_pool2d_op    ? &avg_pool2d_nhwc_op
         : op == &avg_pool2d_dx_op ? &avg_pool2d_nhwc_dx_op
                                   : nullptr;
}

/// Attributes of a convolution or pool for channels-last shapes.
Attrs attributes(const Node& n) {
  return n.attrs.has("shape") ? with_shape(n.attrs, channels_last(n.attrs.ints("shape"))) : n.attrs;
}

/// The attributes of a pool, or of an op with numbers per axis, for channels-last operands; none for other ops.
std::optional<Attrs> moved_attributes(const Node& n) {
  if (channels_last_pool(n.op)) return attributes(n);
  Attrs a = n.attrs;
  if (n.op == &concat_op) {
    a.set("axis", Ints{static_cast<int64_t>(place[static_cast<size_t>(normalize_axis(a.i("axis"), 4))])});
    return a;
  }
  std::vector<const char*> lists;
  if (n.op == &slice_op) lists = {"starts", "stops", "strides"};
  if (n.op == &pad_op) lists = {"low", "high", "interior"};
  for (const char* name : lists) a.set(name, in_order(a.ints(name)));
  return lists.empty() ? std::nullopt : std::optional(a);
}

/// Rewrites a graph; values may exist in either layout, or in both.
class Layout {
 public:
  explicit Layout(const Graph& g) : g_(g), r_(g), last_(g.values().size()) {}

  Graph run() {
    for (const Node& n : g_.nodes()) {
      r_.to().set_origin(n);
      if (const OpDef* op = channels_last_convolution(n.op))
        convolution(n, *op);
      else if (!follows(n) || !on_last(n))
        copy(n);
    }
    for (const State& s : g_.states())
      if (s.after != s.before) first(s.after);
    return r_.finish();
  }

 private:
  const Shape& shape(ValueId v) const { return g_.info(v).type.shape; }
  bool four(ValueId v) const { return shape(v).size() == 4; }
  bool first_known(ValueId v) const { return g_.info(v).role != Role::temp || first_.contains(v); }

  /// The new value in its own layout.
  Value first(ValueId v) {
    if (!first_known(v)) {
      Value x = last_[v];
      set_first(v, either(shape(v)) ? reshape(x, shape(v)) : to_channels_first(x));
    }
    return r_[v];
  }
  void set_first(ValueId v, Value x) {
    r_.set(v, x);
    first_.insert(v);
  }

  void set_images(ValueId v, Value x) {
    last_[v] = x;
    images_.insert(v);
  }

  /// The new value channels-last.
  Value last(ValueId v) {
    if (last_[v]) return last_[v];
    const Shape& s = shape(v);
    const Node* maker = g_.info(v).role == Role::temp ? &g_.nodes()[g_.info(v).producer] : nullptr;
    if (either(s)) return last_[v] = reshape(first(v), channels_last(s));
    if (maker && maker->op == &broadcast_op) return last_[v] = broadcast(operand(maker->inputs[0]), channels_last(s));
    return last_[v] = to_channels_last(first(v));
  }

  /// The new value as an operand that broadcasts to channels-last values.
  Value operand(ValueId v) {
    const Shape& s = shape(v);
    if (num_elements(s) == 1 && s.size() < 4) return first(v);
    if (s.size() == 4) return last(v);
    Shape four(4 - s.size(), 1);
    four.insert(four.end(), s.begin(), s.end());
    Value x = reshape(first(v), four);
    return either(four) ? reshape(x, channels_last(four)) : to_channels_last(x);
  }

  void convolution(const Node& n, const OpDef& op) {
    last_[n.results[0]] = call(op, {last(n.inputs[0]), last(n.inputs[1])}, attributes(n));
    // Gradients of weights go to optimizers, whose states have the layout of the parameters.
    if (n.op != &conv2d_dw_op) images_.insert(n.results[0]);
  }

  /// Whether a node reads images that were computed channels-last.
  bool follows(const Node& n) const {
    return std::ranges::any_of(n.inputs, [&](ValueId v) { return images_.contains(v); });
  }

  void copy(const Node& n) {
    for (ValueId v : n.inputs) first(v);
    r_.copy(n);
    for (ValueId v : n.results) {
      first_.insert(v);
      // One element per channel, as gamma and beta: here, before the nodes that a kernel may compute along with its
      // readers.
      if (four(v) && either(shape(v))) last(v);
    }
  }

  /// Computes the node channels-last, if its op can.
  bool on_last(const Node& n) {
    if (n.op->elementwise()) return elementwise(n);
    if (reduces(n.op)) return reduction(n);
    std::optional<Attrs> a = moved_attributes(n);
    if (!a) return false;
    const OpDef* pool = channels_last_pool(n.op);
    Values in;
    for (ValueId v : n.inputs) in.push_back(last(v));
    Values out = call_all(pool ? *pool : *n.op, in, *a);
    for (size_t k = 0; k < out.size(); ++k) set_images(n.results[k], out[k]);
    return true;
  }

  bool elementwise(const Node& n) {
    if (!std::ranges::all_of(n.results, [&](ValueId v) { return four(v); })) return false;
    Values in;
    for (ValueId v : n.inputs) in.push_back(operand(v));
    Values out = call_all(*n.op, in, n.attrs);
    for (size_t k = 0; k < out.size(); ++k) set_images(n.results[k], out[k]);
    return true;
  }

  bool reduction(const Node& n) {
    const Shape& x = shape(n.inputs[0]);
    Ints axes = reduction_geometry(x, n.attrs).axes, kept, moved;
    for (size_t d : order)
      if (std::ranges::find(axes, static_cast<int64_t>(d)) == axes.end() && x[d] > 1)
        kept.push_back(static_cast<int64_t>(d));
    const bool keep = n.attrs.i("keep") != 0;
    if (!keep && !std::ranges::is_sorted(kept)) return false;
    for (int64_t d : axes) moved.push_back(static_cast<int64_t>(place[static_cast<size_t>(d)]));
    std::ranges::sort(moved);
    Attrs a = n.attrs;
    a.set("axes", moved);
    Value y = call(*n.op, {last(n.inputs[0])}, a);
    ValueId result = n.results[0];
    if (keep)
      set_images(result, y);
    else
      set_first(result, y.shape() == shape(result) ? y : reshape(y, shape(result)));
    return true;
  }

  const Graph& g_;
  Rewriter r_;
  Values last_;                       // per value of g_: channels-last, or null
  std::set<ValueId> first_, images_;  // results that exist in their own layout; that were computed channels-last
};

}  // namespace

Graph channels_last_convolutions(const Graph& g) {
  Graph question;
  for (const Node& n : g.nodes()) {
    const OpDef* op = channels_last_convolution(n.op);
    if (!op) continue;
    Values in;
    for (ValueId v : n.inputs) {
      const TensorType& t = g.info(v).type;
      in.push_back(question.feed(fmt::format("x{}", question.values().size()), {t.dtype, channels_last(t.shape)}));
    }
    question.set_state(fmt::format("y{}", question.nodes().size()), call(*op, in, attributes(n)));
  }
  return question;
}

Graph channels_last(const Graph& g) { return Layout(g).run(); }

double transposed_bytes(const Graph& g) {
  double bytes = 0;
  for (const Node& n : g.nodes())
    if (n.op == &transpose_op) bytes += static_cast<double>(num_bytes(g.info(n.results[0]).type));
  return bytes;
}

double convolution_bytes(const Graph& g) {
  double bytes = 0;
  for (const Node& n : g.nodes()) {
    if (!channels_last_convolution(n.op)) continue;
    for (const auto& list : {n.inputs, n.results})
      for (ValueId v : list) bytes += static_cast<double>(num_bytes(g.info(v).type));
  }
  return bytes;
}

}  // namespace tutti
