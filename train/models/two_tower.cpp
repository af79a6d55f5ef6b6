// Two towers (Yi et al., "Sampling-bias-corrected neural modeling for large corpus item recommendations", 2019): maps
// users and items to unit vectors so that matching ones are close. The loss is the triplet loss (Schroff et al.,
// "FaceNet", 2015).
#include <fmt/format.h>

#include <algorithm>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/ops/cast.h"
#include "graph/ops/concat.h"
#include "graph/ops/less.h"
#include "graph/ops/mul.h"
#include "graph/ops/reshape.h"
#include "nn/modules.h"
#include "nn/sequences.h"
#include "train/task/model.h"
#include "train/task/task.h"

namespace tutti {
namespace {

using namespace nn;

/// Maps ids i32 [N] below `count` to unit vectors [N, width].
struct Tower {
  int64_t count, width, hidden;
  Value forward(Builder& b, Value ids) const {
    Value x = b("embedding", Embedding(count, width), ids);
    x = b("mlp", Sequential{Linear(hidden), Relu(), Linear(width)}, x);
    return normalize(b.output(x));
  }
};

/// Metric "ordered": the fraction of triplets whose positive is closer to the anchor than the negative. Predicts the
/// three vectors, [batch, 3, width].
Outcome triplets(Builder& b, const Batch& x, const Tower& users, const Tower& items, double margin) {
  int64_t n = x.size();
  Value anchor = b("user", users, x.class_ids("anchor", users.count));
  Value both = concat({x.class_ids("positive", items.count), x.class_ids("negative", items.count)}, 0);
  Values item = split(b("item", items, both), n, 0);
  Value counts = x.weights(anchor.dtype());
  Outcome out;
  {
    Graph::Scope scope(b.graph(), "loss", Phase::loss);
    Value each = triplet_margin(anchor, item[0], item[1], {.margin = margin, .reduction = "none"});
    out.loss_sum = sum(x.valid() ? each * counts : each);
    out.weight = sum(counts);
  }
  Graph::Scope scope(b.graph(), "score", Phase::bookkeeping);
  Value ordered = less(pairwise_distance(anchor, item[0]), pairwise_distance(anchor, item[1]));
  out.metrics = {{"ordered", sum(cast(ordered, counts.dtype()) * counts), out.weight}};
  out.output = reshape(concat({anchor, item[0], item[1]}, 1), {n, 3, items.width});
  return out;
}

Task task(const ModelOptions& o, const data::Source& train) {
  auto count = [&](const char* name) {
    data::Column c = train.column(name);
    if (c.type != TensorType{DType::i32, {}} || c.classes < 1)
      throw invalid(fmt::format("two_tower needs the columns anchor, positive and negative, each i32 with a known "
                                "limit; '{}' of {} is {} with limit {}",
                                name, o.data, to_string(c.type), c.classes),
                    "use " + option_text("data", "synthetic-triplets:200:100"));
    return c.classes;
  };
  int64_t width = o.size == "tiny" ? 4 : 32, hidden = o.size == "tiny" ? 8 : 64;
  Tower users{count("anchor"), width, hidden};
  Tower items{std::max(count("positive"), count("negative")), width, hidden};
  return Task([=](Builder& b, const Batch& x) { return triplets(b, x, users, items, 0.2); },
              fmt::format("TwoTower({} users, {} items, width {})", users.count, items.count, width));
}

}  // namespace

extern const ModelDef two_tower_model{
    .name = "two_tower",
    .doc =
        "two towers, for users and items: each maps an id to a vector of length 1 by an embedding and an MLP; triplet "
        "loss",
    .sizes = {{.name = "default", .doc = "width 32, 64 hidden units", .batch = 128, .eval_batch = 256},
              {.name = "tiny", .doc = "width 4, 8 hidden units", .batch = 4, .eval_batch = 4}},
    .build = task,
    .synthetic = [](const ModelOptions& o, int64_t samples) {
      return fmt::format("synthetic-triplets:{}:{}", o.size == "tiny" ? "12:9" : "200:100", samples);
    }};

}  // namespace tutti
