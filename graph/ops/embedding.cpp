#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/op.h"
#include "graph/ops/equal.h"
#include "graph/ops/gather.h"
#include "graph/ops/reshape.h"
#include "graph/ops/scatter_add.h"
#include "graph/ops/select.h"

namespace tutti {

// public
extern TUTTI_API const OpDef embedding_op;
/// y[…, :] = weight[indices[…], :]: rows of weight [V, D] for indices (i32) of any shape. The row `padding_idx` gets no
/// gradient; a negative one counts from the end. Indices outside [0, V) are clamped, as by gather: check tokens
/// beforehand.
TUTTI_API Value embedding(Value weight, Value indices, std::optional<int64_t> padding_idx = {});
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  const Shape& w = in[0].shape;
  if (w.size() != 2 || !is_float(in[0].dtype))
    throw invalid(fmt::format("weight is {}, expected floats [V, D]", to_string(in[0])));
  if (in[1].dtype != DType::i32)
    throw invalid(fmt::format("indices are {}, expected i32", to_string(in[1])), "cast them to i32");
  const Ints& padding = a.ints("padding_idx");
  if (padding.size() > 1 || (padding.size() == 1 && (padding[0] < -w[0] || padding[0] >= w[0])))
    throw invalid(fmt::format("padding_idx {} is out of range for {} rows", to_string(padding), w[0]),
                  fmt::format("use {} to {}, or none", -w[0], w[0] - 1));
  if (w[0] == 0 && num_elements(in[1].shape) > 0) throw invalid("the weight has no rows to index");
  Shape y = in[1].shape;
  y.push_back(w[1]);
  return {{in[0].dtype, y}};
}

/// The samples do not use padding_idx, because its gradient is not a derivative; golden cases test it.
Values vjp(const VjpContext& g) {
  int64_t rows = g.in[0].shape()[0];
  Value index = g.in[1], d = g.d[0];
  for (int64_t p : g.a.ints("padding_idx")) {
    Shape apart = index.shape();
    apart.push_back(1);
    Value skipped = equal(index, index.like(static_cast<double>(p < 0 ? p + rows : p)));
    d = select(reshape(skipped, apart), d.like(0), d);
  }
  return {scatter_add(index, d, rows), {}};
}

}  // namespace

Value embedding(Value weight, Value indices, std::optional<int64_t> padding_idx) {
  return call(embedding_op, {weight, indices}, {{"padding_idx", padding_idx ? Ints{*padding_idx} : Ints{}}});
}

const OpDef embedding_op{
    .name = "embedding",
    .doc =
        "y[…, :] = weight[indices[…], :], weight [V, D], indices i32 of any shape, clamped to [0, V); the row "
        "padding_idx gets no gradient",
    .inputs = {"weight", "indices"},
    .attrs = {{"padding_idx", Ints{}}},
    .infer = infer,
    .decompose = [](const Call& c) { return Values{gather(c.in[0], c.in[1])}; },
    .vjp = vjp,
    .samples = {{.shapes = {{5, 3}, {2, 4}}, .ranges = {{-1, 1}, {0, 4}}, .dtypes = {DType::f32, DType::i32}},
                {.shapes = {{4, 2}, {7}}, .ranges = {{-1, 1}, {-1, 4}}, .dtypes = {DType::f32, DType::i32}},
                {.shapes = {{4, 2}, {0}}, .dtypes = {DType::f32, DType::i32}}}};

}  // namespace tutti
