#include "graph/functions/norms.h"

#include <fmt/format.h>

#include <limits>

#include "core/base/status.h"
#include "graph/functions/reductions.h"
#include "graph/norm.h"
#include "graph/ops/add.h"
#include "graph/ops/cast.h"
#include "graph/ops/div.h"
#include "graph/ops/embedding.h"
#include "graph/ops/equal.h"
#include "graph/ops/group_norm.h"
#include "graph/ops/iota.h"
#include "graph/ops/less_equal.h"
#include "graph/ops/logical_and.h"
#include "graph/ops/logical_not.h"
#include "graph/ops/max.h"
#include "graph/ops/maximum.h"
#include "graph/ops/mul.h"
#include "graph/ops/reshape.h"
#include "graph/ops/rsqrt.h"
#include "graph/ops/scatter_add.h"
#include "graph/ops/select.h"
#include "graph/ops/sub.h"
#include "graph/ops/sum.h"

namespace tutti {

Value batch_norm_eval(Value x, Value mean, Value variance, Value weight, Value bias, double eps) {
  if (x.rank() < 2) throw invalid(fmt::format("batch_norm_eval: x {} has no channel axis", to_string(x.type())));
  Shape channels(x.rank() - 1, 1);
  channels[0] = x.shape()[1];
  auto in_x = [&](const char* name, Value v) {
    if (v.shape() != Shape{channels[0]})
      throw invalid(fmt::format("batch_norm_eval: {} is {}, expected [{}]", name, to_string(v.shape()), channels[0]));
    return reshape(widened(v), channels);
  };
  Value scale = rsqrt(in_x("variance", variance) + eps);
  if (weight) scale = scale * in_x("weight", weight);
  Value y = (widened(x) - in_x("mean", mean)) * scale;
  if (bias) y = y + in_x("bias", bias);
  return cast(y, x.dtype());
}

Value instance_norm(Value x, Value weight, Value bias, double eps) {
  const Shape& s = x.shape();
  if (s.size() < 3 || num_elements(std::span(s).subspan(2)) < 2)
    throw invalid(fmt::format("instance_norm: x {} must have at least two elements per channel", to_string(s)),
                  "use x [N, C, d1, ...]");
  return group_norm(x, std::max<int64_t>(s[1], 1), weight, bias, eps);
}

Value normalize(Value x, double p, int64_t axis, double eps) {
  if (!is_float(x.dtype()))
    throw invalid(fmt::format("normalize: x is {}, must have a float dtype", to_string(x.type())));
  if (!(eps > 0)) throw invalid(fmt::format("normalize: eps is {}, must be above 0", eps));
  Value wide = widened(x), size = norm(wide, p, {axis}, true);
  return cast(wide / maximum(size, size.like(eps)), x.dtype());
}

namespace {

/// The rows selected by the indices, and whether they count.
struct Rows {
  Value at, counts;  ///< floats [..., D] and bool [..., 1]; `counts` is null if all rows count
};

Rows rows_of(Value weight, Value indices, const EmbeddingBagOptions& o) {
  if (o.mode != "sum" && o.mode != "mean" && o.mode != "max")
    throw invalid(fmt::format("embedding_bag: unknown mode '{}'", o.mode), "use 'sum', 'mean' or 'max'");
  Rows rows{embedding(weight, indices, o.padding_idx), {}};
  Shape apart = indices.shape();
  apart.push_back(1);
  if (Value factors = o.per_sample_weights) {
    if (o.mode != "sum" || factors.shape() != indices.shape())
      throw invalid(fmt::format("embedding_bag: per_sample_weights {} do not match indices {} in mode '{}'",
                                to_string(factors.shape()), to_string(indices.shape()), o.mode),
                    "per_sample_weights need the shape of the indices and mode 'sum'");
    rows.at = rows.at * reshape(factors, apart);
  }
  if (o.padding_idx) {
    int64_t p = *o.padding_idx < 0 ? *o.padding_idx + weight.shape()[0] : *o.padding_idx;
    rows.counts = logical_not(equal(reshape(indices, apart), indices.like(static_cast<double>(p))));
  }
  return rows;
}

/// The maximum along an axis over the rows that count; 0 if none does.
Value largest(Value rows, Value counts, int64_t axis) {
  if (counts) rows = select(counts, rows, rows.like(-std::numeric_limits<double>::infinity()));
  Value y = max_with_index(rows, axis)[0];
  if (!counts) return y;
  Value any = max(cast(counts, DType::i32), {axis});
  return select(equal(any, any.like(1)), y, y.like(0));
}

Value mean_of(Value total, Value count) { return cast(widened(total) / maximum(count, count.like(1)), total.dtype()); }

}  // namespace

Value embedding_bag(Value weight, Value indices, const EmbeddingBagOptions& o) {
  if (indices.rank() != 2)
    throw invalid(fmt::format("embedding_bag: indices {} without offsets must have rank 2", to_string(indices.shape())),
                  "use [bags, indices per bag], or [indices] with offsets");
  Rows rows = rows_of(weight, indices, o);
  int64_t size = indices.shape()[1];
  if (o.mode == "max" && size > 0) return largest(rows.at, rows.counts, 1);
  if (rows.counts) rows.at = select(rows.counts, rows.at, rows.at.like(0));
  Value total = sum(rows.at, {1});
  if (o.mode != "mean") return total;
  DType wide = statistics_dtype(total.dtype());
  return mean_of(total,
                 rows.counts ? sum(cast(rows.counts, wide), {1}) : total.graph().full(wide, static_cast<double>(size)));
}

Value embedding_bag(Value weight, Value indices, Value offsets, const EmbeddingBagOptions& o) {
  if (indices.rank() != 1 || offsets.rank() != 1 || offsets.dtype() != DType::i32)
    throw invalid(fmt::format("embedding_bag: invalid indices {} or offsets {}", to_string(indices.type()),
                              to_string(offsets.type())),
                  "use i32 [indices] and i32 [bags]");
  Rows rows = rows_of(weight, indices, o);
  Graph& g = weight.graph();
  int64_t n = indices.shape()[0], bags = offsets.shape()[0];
  // The bag of an index: the number of bags after the first that start at or before it.
  Value begun = less_equal(reshape(offsets, {bags, 1}), iota(g, {1, n}, 1));
  Value bag = sum(cast(begun, DType::i32), {0}) - indices.like(1);
  if (o.mode == "max" && n > 0) {
    Value inside = reshape(equal(reshape(bag, {1, n}), iota(g, {bags, 1}, 0)), {bags, n, 1});
    if (rows.counts) inside = logical_and(inside, reshape(rows.counts, {1, n, 1}));
    return largest(reshape(rows.at, {1, n, rows.at.shape()[1]}), inside, 1);
  }
  if (rows.counts) rows.at = select(rows.counts, rows.at, rows.at.like(0));
  Value total = scatter_add(bag, rows.at, bags);
  if (o.mode != "mean") return total;
  DType wide = statistics_dtype(total.dtype());
  Value ones = rows.counts ? cast(rows.counts, wide) : g.full(wide, 1, {n, 1});
  return mean_of(total, scatter_add(bag, ones, bags));
}

}  // namespace tutti
