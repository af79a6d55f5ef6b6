// DLRM (Naumov et al., "Deep learning recommendation model for personalization and recommendation systems", 2019), with
// the parameter names of Facebook's dlrm_s_pytorch: a bottom MLP for dense features, an embedding bag per table, the
// dot products of all pairs of these vectors, and a top MLP that outputs the logit of a click.
#include <fmt/format.h>

#include <cmath>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "data/host_tensor.h"
#include "graph/functions.h"
#include "graph/ops/concat.h"
#include "graph/ops/matmul.h"
#include "graph/ops/reshape.h"
#include "nn/modules.h"
#include "train/task/model.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using namespace nn;

/// Sums rows of weight [rows, width] per bag: indices i32 [N, bag] to [N, width].
struct EmbeddingBag {
  int64_t rows, width;
  Value forward(Builder& b, Value indices) const {
    double bound = 1 / std::sqrt(static_cast<double>(rows));
    Value weight = b.parameter("weight", {rows, width}, {Init::uniform, -bound, bound});
    return embedding_bag(weight, indices, {.mode = "sum"});
  }
};

/// Dot products of all pairs of different vectors in x [N, count, width]: [N, count (count - 1) / 2].
Value pairs(Value x) {
  int64_t n = x.shape()[0], count = x.shape()[1];
  std::vector<int32_t> positions;  // below the diagonal of [count, count]
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < i; ++j) positions.push_back(static_cast<int32_t>(i * count + j));
  HostTensor index = host_tensor(DType::i32, {static_cast<int64_t>(positions.size())}, positions);
  Value products = reshape(matmul(x, x, false, true), {n, count * count});
  return index_select(products, 1, x.graph().constant(index.type, index.bytes));
}

struct Dlrm {
  int64_t rows;
  std::vector<int64_t> bottom, top;  ///< MLP widths; bottom.back() is the width of the embeddings

  /// dense [N, features], sparse i32 [N, tables, bag] to [N, 1].
  Value forward(Builder& b, Value dense, Value sparse) const {
    int64_t n = dense.shape()[0], tables = sparse.shape()[1], bag = sparse.shape()[2], width = bottom.back();
    std::vector<Layer> layers;
    for (int64_t features : bottom) {
      layers.emplace_back(Linear(features, {.init = Scheme::xavier_normal}));
      layers.emplace_back(Relu());
    }
    Value x = b("bot_l", Sequential(layers), dense);
    Values vectors = {x}, bags = split(sparse, 1, 1);
    for (int64_t k = 0; k < tables; ++k)
      vectors.push_back(
          b(fmt::format("emb_l.{}", k), EmbeddingBag{rows, width}, reshape(bags[static_cast<size_t>(k)], {n, bag})));
    Value all = reshape(concat(vectors, 1), {n, tables + 1, width});
    layers.clear();
    for (int64_t features : top) {
      if (!layers.empty()) layers.emplace_back(Relu());
      layers.emplace_back(Linear(features, {.init = Scheme::xavier_normal}));
    }
    return b("top_l", Sequential(layers), concat({x, pairs(all)}, 1));
  }
};

Task task(const ModelOptions& o, const data::Source& train) {
  data::Column dense = train.column("dense"), sparse = train.column("sparse"), label = train.column("label");
  if (!is_float(dense.type.dtype) || dense.type.shape.size() != 1 || sparse.type.dtype != DType::i32 ||
      sparse.type.shape.size() != 2 || sparse.classes < 1 || !label.type.shape.empty())
    throw invalid(
        fmt::format("dlrm needs the columns dense f32[features], sparse i32[tables, bag] with a known number of rows, "
                    "and label (0 or 1); {} has {}, {} with {} rows and {}",
                    o.data, to_string(dense.type), to_string(sparse.type), sparse.classes, to_string(label.type)),
        "use " + option_text("data", "synthetic-clicks:13:26:1000"));
  bool tiny = o.size == "tiny";
  Dlrm net{.rows = sparse.classes,
           .bottom = tiny ? std::vector<int64_t>{8, 4} : std::vector<int64_t>{64, 16},
           .top = tiny ? std::vector<int64_t>{8, 1} : std::vector<int64_t>{64, 1}};
  return Task(
      [net](Builder& b, const Batch& x) {
        Value sparse = x.class_ids("sparse", net.rows);
        return binary_classified(b.output(net.forward(b, b.input(x["dense"]), sparse)), x);
      },
      fmt::format("Dlrm({} tables of {} rows, width {})", sparse.type.shape[0], net.rows, net.bottom.back()));
}

}  // namespace

extern const ModelDef dlrm_model{
    .name = "dlrm",
    .doc = "DLRM, predicts clicks: a bottom MLP, an embedding bag per table, their pairwise dot products, a top MLP",
    .sizes = {{.name = "default",
               .doc = "bottom 64-16, top 64-1; 13 dense features, 26 tables of 1000 rows",
               .batch = 128,
               .eval_batch = 256},
              {.name = "tiny",
               .doc = "bottom 8-4, top 8-1; 3 dense features, 3 tables of 10 rows",
               .batch = 4,
               .eval_batch = 4}},
    .build = task,
    .synthetic = [](const ModelOptions& o, int64_t samples) {
      return fmt::format("synthetic-clicks:{}:{}", o.size == "tiny" ? "3:3:10" : "13:26:1000", samples);
    }};

}  // namespace tutti
