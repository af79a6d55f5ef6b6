#include "graph/functions/losses.h"

#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/in_f32.h"
#include "graph/loss.h"
#include "graph/ops/abs.h"
#include "graph/ops/bce.h"
#include "graph/ops/bce_with_logits.h"
#include "graph/ops/equal.h"
#include "graph/ops/exp.h"
#include "graph/ops/huber.h"
#include "graph/ops/iota.h"
#include "graph/ops/log.h"
#include "graph/ops/relu.h"
#include "graph/ops/reshape.h"
#include "graph/ops/rsqrt.h"
#include "graph/ops/sigmoid.h"
#include "graph/ops/softplus.h"
#include "graph/ops/sqrt.h"
#include "graph/ops/sum.h"

namespace tutti {
namespace {

/// Reduces the elements f(in), computed in f32.
Value loss(const Values& in, const std::string& reduction, const std::function<Value(const Values&)>& f) {
  return rounded_once(in, [&](const Values& v) {
    Value each = f(v);
    Attrs a = {{"reduction", reduction}};
    reduced_loss(each.type(), a);  // throws for unknown reductions
    return reduce_loss(each, a);
  });
}

void require(bool fits, const char* what, const Values& in, const char* remedy) {
  if (fits) return;
  std::string types;
  for (const Value& v : in) types += (types.empty() ? "" : ", ") + to_string(v.type());
  throw invalid(fmt::format("{}: invalid inputs {}", what, types), remedy);
}

/// Throws unless all have the same shape and float dtype.
void require_alike(const char* what, const Values& in) {
  bool fits = is_float(in[0].dtype());
  for (const Value& v : in) fits = fits && v.type() == in[0].type();
  require(fits, what, in, "use tensors with the same shape and the same float dtype");
}

/// A weight per class, reshaped to axis 1.
Value class_weight(const char* what, Value weight, Value x) {
  require(weight.type() == TensorType{x.dtype(), {x.shape()[1]}}, what, {x, weight}, "give one weight per class");
  Shape classes(x.rank(), 1);
  classes[1] = x.shape()[1];
  return reshape(weight, classes);
}

/// Checks logits or log-probabilities [N, C, ...] with labels i32 [N, ...].
void require_labels(const char* what, Value x, Value labels) {
  Shape want = x.shape();
  if (want.size() > 1) want.erase(want.begin() + 1);
  require(x.rank() > 1 && x.shape()[1] > 0 && is_float(x.dtype()) && labels.type() == TensorType{DType::i32, want},
          what, {x, labels}, "use float inputs [N, C, ...] with C >= 1 and i32 labels [N, ...]");
}

/// bool [N, C, ...]: whether the class is that of the label.
Value hits(Value x, Value labels) {
  Shape row = x.shape(), classes(x.rank(), 1);
  row[1] = 1;
  classes[1] = x.shape()[1];
  return equal(reshape(labels, row), iota(x.graph(), classes, 1));
}

Value only(Value hit, Value x) { return where(hit, x, 0); }

}  // namespace

Value l1(Value x, Value target, const std::string& reduction) {
  require_alike("l1", {x, target});
  return loss({x, target}, reduction, [](const Values& v) { return abs(v[0] - v[1]); });
}

Value smooth_l1(Value x, Value target, double beta, const std::string& reduction) {
  if (beta == 0) return l1(x, target, reduction);
  require_alike("smooth_l1", {x, target});
  if (!(beta > 0)) throw invalid(fmt::format("smooth_l1: beta is {}", beta), "use 0 or more");
  return loss({x, target}, reduction, [&](const Values& v) { return huber(v[0], v[1], beta, "none") / beta; });
}

Value gaussian_nll(Value x, Value target, Value variance, const GaussianNllOptions& o) {
  require_alike("gaussian_nll", {x, target});
  if (!(o.eps > 0)) throw invalid(fmt::format("gaussian_nll: eps is {}, must be above 0", o.eps));
  return loss({x, target, variance}, o.reduction, [&](const Values& v) {
    Value r = v[0] - v[1], wide = maximum(v[2], o.eps);
    Value each = (log(wide) + r * r / wide) * 0.5;
    return o.full ? each + 0.91893853320467274 : each;  // ln(2 pi) / 2
  });
}

Value poisson_nll(Value x, Value target, const PoissonNllOptions& o) {
  require_alike("poisson_nll", {x, target});
  return loss({x, target}, o.reduction, [&](const Values& v) {
    Value t = v[1], each = o.log_input ? exp(v[0]) - t * v[0] : v[0] - t * log(v[0] + o.eps);
    if (!o.full) return each;
    Value many = t > 1.0, n = where(many, t, 1);
    return each + only(many, n * log(n) - n + log(n * 6.2831853071795865) * 0.5);
  });
}

Value nll(Value x, Value labels, const NllOptions& o) {
  require_labels("nll", x, labels);
  Values in = {x};
  if (o.weight) in.push_back(class_weight("nll", o.weight, x));
  Value ignored = equal(labels, labels.like(static_cast<double>(o.ignore_index)));
  Value hit = hits(x, where(ignored, -1, labels));
  return rounded_once(in, [&](const Values& v) {
    Value weight = v.size() > 1 ? v[1] : v[0].like(1);
    Value each = -sum(only(hit, v.size() > 1 ? v[0] * weight : v[0]), {1});
    Attrs a = {{"reduction", o.reduction}};
    reduced_loss(each.type(), a);
    return o.reduction == "mean" ? sum(each) / sum(only(hit, weight)) : reduce_loss(each, a);
  });
}

Value kl_div(Value x, Value target, bool log_target, const std::string& reduction) {
  require_alike("kl_div", {x, target});
  bool batch = reduction == "batchmean";
  require(!batch || x.rank() > 0, "kl_div", {x, target}, "\"batchmean\" needs inputs of rank 1 or more");
  return rounded_once({x, target}, [&](const Values& v) {
    Value t = v[1];
    Value each = log_target ? exp(t) * (t - v[0]) : t * (log(where(equal(t, t.like(0)), 1, t)) - v[0]);  // 0 ln 0 = 0
    Value y = loss({each}, batch ? "sum" : reduction, [](const Values& e) { return e[0]; });
    return batch ? y / static_cast<double>(x.shape()[0]) : y;
  });
}

Value bce_with_logits(Value x, Value target, const BceOptions& o) {
  require_alike("bce_with_logits", {x, target});
  Values in = {x, target};
  if (o.weight) in.push_back(o.weight);
  if (o.pos_weight) in.push_back(o.pos_weight);
  return loss(in, o.reduction, [&](const Values& v) {
    Value each = bce_with_logits(v[0], v[1], "none");
    if (o.pos_weight) each = (1 - v[1]) * softplus(v[0]) + v.back() * v[1] * softplus(-v[0]);
    return o.weight ? each * v[2] : each;
  });
}

Value bce(Value x, Value target, const BceOptions& o) {
  if (o.pos_weight) throw invalid("bce: pos_weight is only supported for logits", "use bce_with_logits");
  require_alike("bce", {x, target});
  Values in = {x, target};
  if (o.weight) in.push_back(o.weight);
  return loss(in, o.reduction, [](const Values& v) {
    Value each = bce(v[0], v[1], "none");
    return v.size() > 2 ? each * v[2] : each;
  });
}

Value sigmoid_focal(Value x, Value target, const FocalOptions& o) {
  require_alike("sigmoid_focal", {x, target});
  return loss({x, target}, o.reduction, [&](const Values& v) {
    Value t = v[1], missed = sigmoid(v[0]) * (1 - t) + sigmoid(-v[0]) * t;  // 1 - p
    Value each = pow(missed, o.gamma) * bce_with_logits(v[0], t, "none");
    return o.alpha < 0 ? each : each * (t * o.alpha + (1 - t) * (1 - o.alpha));
  });
}

Value dice(Value x, Value target, const DiceOptions& o) {
  require_alike("dice", {x, target});
  require(x.rank() > 2, "dice", {x, target}, "use probabilities [N, C, d1, …]");
  if (!(o.smooth > 0)) throw invalid(fmt::format("dice: smooth is {}, must be above 0", o.smooth));
  Ints positions;
  for (size_t axis = 2; axis < x.rank(); ++axis) positions.push_back(static_cast<int64_t>(axis));
  return loss({x, target}, o.reduction, [&](const Values& v) {
    Value both = sum(v[0] * v[1], positions), squares = sum(v[0] * v[0] + v[1] * v[1], positions);
    return 1 - (both * 2 + o.smooth) / (squares + o.smooth);
  });
}

Value hinge_embedding(Value x, Value target, double margin, const std::string& reduction) {
  require_alike("hinge_embedding", {x, target});
  return loss({x, target}, reduction, [&](const Values& v) {
    return only(equal(v[1], v[1].like(1)), v[0]) + only(equal(v[1], v[1].like(-1)), relu(margin - v[0]));
  });
}

Value margin_ranking(Value a, Value b, Value target, double margin, const std::string& reduction) {
  require_alike("margin_ranking", {a, b, target});
  return loss({a, b, target}, reduction, [&](const Values& v) { return relu(margin - v[2] * (v[0] - v[1])); });
}

Value multi_margin(Value x, Value labels, const MultiMarginOptions& o) {
  require_labels("multi_margin", x, labels);
  require(x.rank() == 2, "multi_margin", {x, labels}, "use x [N, C] and labels [N]");
  if (o.p != 1 && o.p != 2) throw invalid(fmt::format("multi_margin: p is {}", o.p), "use 1 or 2");
  Values in = {x};
  if (o.weight) in.push_back(class_weight("multi_margin", o.weight, x));
  Value hit = hits(x, labels);
  return loss(in, o.reduction, [&](const Values& v) {
    Value short_of = relu(o.margin - sum(only(hit, v[0]), {1}, true) + v[0]);
    Value each = where(hit, 0, o.p == 2 ? short_of * short_of : short_of);
    if (v.size() > 1) each = each * sum(only(hit, v[1]), {1}, true);
    return sum(each, {1}) / static_cast<double>(x.shape()[1]);
  });
}

Value cosine_similarity(Value a, Value b, int64_t axis, double eps) {
  require(is_float(a.dtype()) && a.dtype() == b.dtype(), "cosine_similarity", {a, b},
          "use inputs with the same float dtype");
  if (!(eps > 0)) throw invalid(fmt::format("cosine_similarity: eps is {}, must be above 0", eps));
  return rounded_once({a, b}, [&](const Values& v) {
    auto inverse = [&](Value x) { return rsqrt(maximum(sum(x * x, {axis}), eps * eps)); };
    return sum(v[0] * v[1], {axis}) * inverse(v[0]) * inverse(v[1]);
  });
}

Value cosine_embedding(Value a, Value b, Value target, double margin, const std::string& reduction) {
  require_alike("cosine_embedding", {a, b});
  Shape rows = a.shape();
  if (!rows.empty()) rows.pop_back();
  require((a.rank() == 1 || a.rank() == 2) && target.type() == TensorType{a.dtype(), rows}, "cosine_embedding",
          {a, b, target}, "use two inputs [N, D] and a target [N], or two inputs [D] and a scalar target");
  return loss({a, b, target}, reduction, [&](const Values& v) {
    auto inverse = [](Value x) { return rsqrt(sum(x * x, {-1}) + 1e-12); };
    Value cosine = sum(v[0] * v[1], {-1}) * inverse(v[0]) * inverse(v[1]);
    return only(equal(v[2], v[2].like(1)), 1 - cosine) + only(equal(v[2], v[2].like(-1)), relu(cosine - margin));
  });
}

Value pairwise_distance(Value a, Value b, double eps, bool keep) {
  require(is_float(a.dtype()) && a.dtype() == b.dtype(), "pairwise_distance", {a, b},
          "use inputs with the same float dtype");
  return rounded_once({a, b}, [&](const Values& v) {
    Value r = v[0] - v[1] + eps;
    return sqrt(sum(r * r, {-1}, keep));
  });
}

Value triplet_margin(Value anchor, Value positive, Value negative, const TripletMarginOptions& o) {
  require_alike("triplet_margin", {anchor, positive, negative});
  return loss({anchor, positive, negative}, o.reduction, [&](const Values& v) {
    Value far = pairwise_distance(v[0], v[2], o.eps);
    if (o.swap) far = minimum(far, pairwise_distance(v[1], v[2], o.eps));
    return relu(pairwise_distance(v[0], v[1], o.eps) - far + o.margin);
  });
}

}  // namespace tutti
