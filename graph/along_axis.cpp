#include "graph/along_axis.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "graph/ops/add.h"
#include "graph/ops/concat.h"
#include "graph/ops/iota.h"
#include "graph/ops/maximum.h"
#include "graph/ops/minimum.h"
#include "graph/ops/mul.h"
#include "graph/ops/reshape.h"
#include "graph/ops/slice.h"

namespace tutti {

void each_along(const IndexGeometry& g, const Tensor& index, const std::function<void(size_t, size_t)>& visit) {
  size_t at = 0;
  for (int64_t o = 0; o < g.outer; ++o)
    for (int64_t i = 0; i < g.count; ++i)
      for (int64_t k = 0; k < g.inner; ++k, ++at) {
        auto row = std::clamp<int64_t>(static_cast<int64_t>(index.at[at]), 0, g.size - 1);
        visit(static_cast<size_t>((o * g.size + row) * g.inner + k), at);
      }
}

Value flat_index(Value index, const IndexGeometry& g) {
  if (g.outer * g.size * g.inner > 0x7fffffff)
    throw Error(Code::declined,
                fmt::format("indexing into a tensor of {} elements is not supported (the maximum is 2^31 - 1)",
                            g.outer * g.size * g.inner),
                "use a smaller batch");
  Graph& graph = index.graph();
  Value row = minimum(maximum(index, index.like(0)), index.like(static_cast<double>(g.size - 1)));
  Value flat = reshape(row, {g.outer, g.count, g.inner}) * static_cast<double>(g.inner);
  if (g.outer > 1) flat = flat + iota(graph, {g.outer, 1, 1}, 0) * static_cast<double>(g.size * g.inner);
  if (g.inner > 1) flat = flat + iota(graph, {1, 1, g.inner}, 2);
  return reshape(flat, index.shape());
}

Value slice_axis(Value x, int64_t axis, int64_t start, int64_t stop) {
  Ints starts(x.rank()), stops = x.shape();
  auto at = static_cast<size_t>(normalize_axis(axis, x.rank()));
  starts[at] = start;
  stops[at] = stop;
  return slice(x, starts, stops);
}

Types infer_scan(std::span<const TensorType> in, const Attrs& a) {
  if (in[0].dtype == DType::boolean) throw invalid("x is bool", "cast it to i32");
  normalize_axis(a.i("axis"), in[0].shape.size());
  return {in[0]};
}

Values scan(Values x, int64_t axis, const std::function<Values(const Values&, const Values&)>& combine) {
  int64_t n = x[0].shape()[static_cast<size_t>(normalize_axis(axis, x[0].rank()))];
  for (int64_t shift = 1; shift < n; shift *= 2) {
    Values left, right;
    for (Value v : x) {
      left.push_back(slice_axis(v, axis, 0, n - shift));
      right.push_back(slice_axis(v, axis, shift, n));
    }
    Values folded = combine(left, right);
    for (size_t k = 0; k < x.size(); ++k) x[k] = concat({slice_axis(x[k], axis, 0, shift), folded[k]}, axis);
  }
  return x;
}

}  // namespace tutti
