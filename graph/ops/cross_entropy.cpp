#include <fmt/format.h>

#include <array>

#include "core/base/status.h"
#include "graph/in_f32.h"
#include "graph/loss.h"
#include "graph/op.h"
#include "graph/ops/add.h"
#include "graph/ops/cast.h"
#include "graph/ops/div.h"
#include "graph/ops/equal.h"
#include "graph/ops/iota.h"
#include "graph/ops/less.h"
#include "graph/ops/less_equal.h"
#include "graph/ops/log_softmax.h"
#include "graph/ops/logical_and.h"
#include "graph/ops/logical_not.h"
#include "graph/ops/mul.h"
#include "graph/ops/neg.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "graph/ops/softmax.h"
#include "graph/ops/sub.h"
#include "graph/ops/sum.h"

namespace tutti {

// public
extern TUTTI_API const OpDef cross_entropy_op;
/// Options of cross_entropy; PyTorch's defaults.
struct CrossEntropyOptions {
  double label_smoothing = 0;
  int64_t ignore_index = -100;
  std::string reduction = "mean";
  Value weight = {};  ///< per class, [C]; default: all 1
};
/// The cross-entropy of softmax(logits) against class indices: logits [N, C] or [N, C, d1, ...], labels i32 [N] or [N,
/// d1, ...]. `ignore_index` and labels outside [0, C) are ignored; "mean" divides by the number of other labels (the
/// sum of their weights). A target of the logits' type holds class probabilities instead; then "mean" divides by N d1
/// ...
TUTTI_API Value cross_entropy(Value logits, Value target, const CrossEntropyOptions& o = {});
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  const Shape &x = in[0].shape, &labels = in[1].shape;
  if (x.size() < 2 || !is_float(in[0].dtype) || x[1] < 1)
    throw invalid(
        fmt::format("logits {} must be floats of shape [N, C] or [N, C, d1, ...] with C >= 1", to_string(in[0])));
  Shape want = x;
  want.erase(want.begin() + 1);
  if (labels != want || in[1].dtype != DType::i32)
    throw invalid(fmt::format("logits {} need labels of type {}, got {}", to_string(in[0]),
                              to_string({DType::i32, want}), to_string(in[1])));
  double smoothing = a.f("label_smoothing");
  if (!(smoothing >= 0 && smoothing <= 1))
    throw invalid(fmt::format("label_smoothing is {}, but must lie in [0, 1]", smoothing));
  return {reduced_loss({in[0].dtype, want}, a)};
}

/// Per label, with class axis of size 1: whether it counts; per class: whether it is that of the label.
struct Labels {
  Value counts, hit;  ///< bool [N, 1, d1, ...] and [N, C, d1, ...]
};

Labels read_labels(Value logits, Value labels, const Attrs& a) {
  Shape row = logits.shape(), classes(logits.rank(), 1);
  row[1] = 1;
  classes[1] = logits.shape()[1];
  Value l = reshape(labels, row);
  Value in_range = logical_and(less_equal(l.like(0), l), less(l, l.like(static_cast<double>(classes[1]))));
  Value ignored = equal(l, l.like(static_cast<double>(a.i("ignore_index"))));
  return {logical_and(in_range, logical_not(ignored)), equal(l, iota(labels.graph(), classes, 1))};
}

/// The smoothed target probabilities: (1 - s) at the label, plus s / C everywhere.
Value target_of(Value logits, Value hit, const Attrs& a) {
  double s = a.f("label_smoothing"), rest = s / static_cast<double>(logits.shape()[1]);
  return select(hit, logits.like(1 - s + rest), logits.like(rest));
}

Value count_of(Value counts, DType t) { return sum(cast(counts, t)); }

Values decompose(const Call& c) {
  Value x = c.in[0];
  Labels labels = read_labels(x, c.in[1], c.a);
  Value terms = log_softmax(x, 1);
  if (c.a.f("label_smoothing") == 0)
    terms = select(labels.hit, terms, x.like(0));  // not a product: 0 * -inf must not reach the sum
  else
    terms = target_of(x, labels.hit, c.a) * terms;
  Value each = -sum(terms, {1}, true);
  each = reshape(select(labels.counts, each, each.like(0)), c.in[1].shape());
  const std::string& reduction = c.a.text("reduction");
  if (reduction == "none") return {each};
  if (reduction == "sum") return {sum(each)};
  return {sum(each) / count_of(labels.counts, x.dtype())};
}

/// Class weights and probabilities, which the op has no inputs for: -sum over classes of weight * target *
/// log_softmax(logits).
Values compose(const Call& c) {
  Value x = c.in[0], target = c.in[1], terms = log_softmax(x, 1), weight, counts;
  Shape classes(x.rank(), 1), rest = x.shape();
  classes[1] = x.shape()[1];
  rest.erase(rest.begin() + 1);
  double s = c.a.f("label_smoothing"), n = static_cast<double>(num_elements(rest));
  if (c.in.size() > 2) weight = reshape(c.in[2], classes);
  Value total = x.like(n);
  if (target.dtype() == DType::i32) {
    Labels labels = read_labels(x, target, c.a);
    counts = labels.counts;
    terms = s == 0 ? select(labels.hit, terms, x.like(0)) : target_of(x, labels.hit, c.a) * terms;
    total = sum(select(logical_and(labels.hit, counts), weight, x.like(0)));
  } else {
    terms = (s == 0 ? target : target * (1 - s) + s / static_cast<double>(classes[1])) * terms;
  }
  if (weight) terms = weight * terms;
  Value each = -sum(terms, {1}, true);
  if (counts) each = select(counts, each, x.like(0));
  const std::string& reduction = c.a.text("reduction");
  if (reduction == "none") return {reshape(each, rest)};
  return {reduction == "sum" ? sum(each) : sum(each) / total};
}

Values vjp(const VjpContext& g) {
  Value x = g.in[0], d = g.d[0];
  Labels labels = read_labels(x, g.in[1], g.a);
  const std::string& reduction = g.a.text("reduction");
  if (reduction == "mean") d = d / count_of(labels.counts, x.dtype());
  if (reduction == "none") d = reshape(d, labels.counts.shape());
  return {(softmax(x, 1) - target_of(x, labels.hit, g.a)) * select(labels.counts, d, d.like(0)), {}};
}

std::vector<Sample> samples() {
  auto with = [](Shape x, double low, const char* reduction, double smoothing, int64_t ignore) {
    Shape labels = x;
    labels.erase(labels.begin() + 1);
    return Sample{
        .shapes = {x, labels},
        .attrs = {{"reduction", reduction}, {"label_smoothing", Reals{smoothing}}, {"ignore_index", Ints{ignore}}},
        .ranges = {{-3, 3}, {low, static_cast<double>(x[1] - 1)}},
        .dtypes = {DType::f32, DType::i32}};
  };
  return {with({4, 5}, 0, "mean", 0, -100),  with({6, 3}, 0, "mean", 0.1, 1),   with({3, 4, 2, 3}, 0, "sum", 0, -100),
          with({5, 4}, -1, "none", 0.2, -1), with({9, 3}, -1, "mean", 0, -100), with({64, 10}, 0, "mean", 0, -100)};
}

}  // namespace

Value cross_entropy(Value logits, Value target, const CrossEntropyOptions& o) {
  Attrs a = {{"label_smoothing", Reals{o.label_smoothing}},
             {"ignore_index", Ints{o.ignore_index}},
             {"reduction", o.reduction}};
  const TensorType& x = logits.type();
  bool soft = target.type() == x;
  if (!soft && !o.weight) return call(cross_entropy_op, {logits, target}, a);
  Shape labels = x.shape;
  if (labels.size() > 1) labels.erase(labels.begin() + 1);
  infer_types(cross_entropy_op, std::array{x, soft ? TensorType{DType::i32, labels} : target.type()}, a);
  Values in = {logits, target};
  if (o.weight) {
    if (o.weight.type() != TensorType{x.dtype, {x.shape[1]}})
      throw invalid(fmt::format("cross_entropy: weight {} does not match the classes of logits {}",
                                to_string(o.weight.type()), to_string(x)),
                    fmt::format("use a weight of type {}", to_string(TensorType{x.dtype, {x.shape[1]}})));
    in.push_back(o.weight);
  }
  return rounded_once(compose, {logits.graph(), in, a})[0];
}

const OpDef cross_entropy_op{
    .name = "cross_entropy",
    .doc =
        "y = -sum over classes of target * log_softmax(logits), target = 1 - label_smoothing at the label plus "
        "label_smoothing / C everywhere; logits [N, C, ...], labels i32 [N, ...]; labels equal to ignore_index or "
        "outside [0, C) give 0 and do not count in the \"mean\"; or \"sum\", or \"none\"",
    .inputs = {"logits", "labels"},
    .attrs = loss_attrs({{"label_smoothing", Reals{0}}, {"ignore_index", Ints{-100}}}),
    .infer = infer,
    .decompose = in_f32<decompose>,
    .vjp = in_f32<vjp>,
    .samples = samples()};

}  // namespace tutti
