// Losses composed of ops, with PyTorch's names and defaults. `reduction` is "mean" (over all elements, unless stated
// otherwise), "sum" or "none". f16 and bf16 are computed in f32 and rounded once. These losses are ops: mse, huber,
// bce, bce_with_logits, cross_entropy.
#pragma once
#include <string>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

// ---- regression

/// |x - target|
TUTTI_API Value l1(Value x, Value target, const std::string& reduction = "mean");
/// r^2 / (2 beta) where |r| < beta, else |r| - beta / 2, for r = x - target; l1 where beta is 0.
TUTTI_API Value smooth_l1(Value x, Value target, double beta = 1, const std::string& reduction = "mean");

/// Options of gaussian_nll.
struct TUTTI_API GaussianNllOptions {
  bool full = false;  ///< adds the constant ln(2 pi) / 2
  double eps = 1e-6;  ///< lower bound of the variance; no gradient flows to a variance below it
  std::string reduction = "mean";
};
/// (ln variance + (x - target)^2 / variance) / 2; the variance broadcasts to x.
TUTTI_API Value gaussian_nll(Value x, Value target, Value variance, const GaussianNllOptions& o = {});

/// Options of poisson_nll.
struct TUTTI_API PoissonNllOptions {
  bool log_input = true;  ///< x is the logarithm of the rate
  bool full = false;      ///< adds Stirling's approximation of ln(target!) where target > 1
  double eps = 1e-8;      ///< added to the rate before taking its logarithm
  std::string reduction = "mean";
};
/// e^x - target x, or x - target ln(x + eps).
TUTTI_API Value poisson_nll(Value x, Value target, const PoissonNllOptions& o = {});

// ---- classes and probabilities

/// Options of nll.
struct TUTTI_API NllOptions {
  Value weight = {};  ///< per class, [C]; default: all 1
  int64_t ignore_index = -100;
  std::string reduction = "mean";
};
/// -weight[label] x[label] for log-probabilities x [N, C] or [N, C, d1, ...] and labels i32 [N] or [N, d1, ...]. "mean"
/// divides by the sum of the weights; labels equal to ignore_index or outside [0, C) are ignored.
TUTTI_API Value nll(Value x, Value labels, const NllOptions& o = {});

/// target (ln target - x) for log-probabilities x; with `log_target` e^target (target - x). `reduction` may also be
/// "batchmean": the sum divided by the first dimension.
TUTTI_API Value kl_div(Value x, Value target, bool log_target = false, const std::string& reduction = "mean");

/// Weights of the binary cross-entropies; null: 1. Both broadcast to x.
struct TUTTI_API BceOptions {
  Value weight = {};      ///< per element
  Value pos_weight = {};  ///< of the positive term; only for logits
  std::string reduction = "mean";
};
/// bce_with_logits with weights.
TUTTI_API Value bce_with_logits(Value x, Value target, const BceOptions& o);
/// bce with weights.
TUTTI_API Value bce(Value x, Value target, const BceOptions& o);

/// Options of sigmoid_focal; torchvision's defaults.
struct TUTTI_API FocalOptions {
  double alpha = 0.25;  ///< weight of target 1; target 0 has 1 - alpha; below 0: no weights
  double gamma = 2;
  std::string reduction = "none";
};
/// The focal loss (Lin et al. 2017) of logits: (1 - p)^gamma bce_with_logits, where p is the predicted probability of
/// the target.
TUTTI_API Value sigmoid_focal(Value x, Value target, const FocalOptions& o = {});

/// Options of dice.
struct TUTTI_API DiceOptions {
  double smooth = 1;  ///< makes the loss 0 for a class that neither x nor the target contains
  std::string reduction = "mean";
};
/// 1 - (2 sum of x target + smooth) / (sum of x^2 + sum of target^2 + smooth) per sample and class, [N, C], for
/// probabilities x [N, C, d1, …] and a one-hot target of that shape (Milletari et al. 2016).
TUTTI_API Value dice(Value x, Value target, const DiceOptions& o = {});

// ---- margins

/// x where target is 1, max(0, margin - x) where it is -1.
TUTTI_API Value hinge_embedding(Value x, Value target, double margin = 1, const std::string& reduction = "mean");
/// max(0, margin - target (a - b)) for target 1 or -1.
TUTTI_API Value margin_ranking(Value a, Value b, Value target, double margin = 0,
                               const std::string& reduction = "mean");

/// Options of multi_margin.
struct TUTTI_API MultiMarginOptions {
  int64_t p = 1;  ///< 1 or 2
  double margin = 1;
  Value weight = {};  ///< per class, [C]; default: all 1
  std::string reduction = "mean";
};
/// The sum over other classes of weight[label] max(0, margin - x[label] + x)^p / C, for x [N, C] and labels i32 [N].
TUTTI_API Value multi_margin(Value x, Value labels, const MultiMarginOptions& o = {});

// ---- distances

/// The cosine of the angle between a and b along an axis; norms are clamped to at least eps.
TUTTI_API Value cosine_similarity(Value a, Value b, int64_t axis = 1, double eps = 1e-8);
/// 1 - cosine where target is 1, max(0, cosine - margin) where it is -1: a and b [N, D], target [N]; or [D] and [].
TUTTI_API Value cosine_embedding(Value a, Value b, Value target, double margin = 0,
                                 const std::string& reduction = "mean");
/// The Euclidean norm of a - b + eps along the last axis.
TUTTI_API Value pairwise_distance(Value a, Value b, double eps = 1e-6, bool keep = false);

/// Options of triplet_margin.
struct TUTTI_API TripletMarginOptions {
  double margin = 1, eps = 1e-6;
  bool swap = false;  ///< uses the distance of positive and negative if it is less than that of anchor and negative
  std::string reduction = "mean";
};
/// max(0, distance(anchor, positive) - distance(anchor, negative) + margin) with pairwise_distance.
TUTTI_API Value triplet_margin(Value anchor, Value positive, Value negative, const TripletMarginOptions& o = {});

}  // namespace tutti
