#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/op.h"
#include "graph/ops/reshape.h"
#include "graph/ops/sum.h"

namespace tutti {

// public
extern TUTTI_API const OpDef matmul_op;
/// y = a b over the last two dimensions (`ta`, `tb` transpose them first); the leading ones broadcast. Rank >= 2.
inline Value matmul(Value a, Value b, bool ta = false, bool tb = false) {
  return call(matmul_op, {a, b}, {{"ta", Ints{ta}}, {"tb", Ints{tb}}});
}
// end of public
namespace {

struct Geometry {
  int64_t m, k, kb, n;
  Shape batch;
};

Geometry geometry(const Shape& a, const Shape& b, const Attrs& at) {
  if (a.size() < 2 || b.size() < 2) throw invalid("both operands must have rank 2 or more");
  int64_t ar = a[a.size() - 2], ac = a.back(), br = b[b.size() - 2], bc = b.back();
  if (at.i("ta")) std::swap(ar, ac);
  if (at.i("tb")) std::swap(br, bc);
  return {ar, ac, br, bc, broadcast_shapes(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2))};
}

Types infer(std::span<const TensorType> in, const Attrs& a) {
  Geometry g = geometry(in[0].shape, in[1].shape, a);
  if (g.k != g.kb) throw invalid(fmt::format("the inner dimensions differ: a has {}, b has {}", g.k, g.kb));
  if (in[0].dtype != in[1].dtype) throw invalid("both operands must have the same dtype", "cast one of the operands");
  Shape y = g.batch;
  y.insert(y.end(), {g.m, g.n});
  return {{in[0].dtype, y}};
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& at) {
  Geometry g = geometry(in[0].shape(), in[1].shape(), at);
  Shape as(in[0].shape().begin(), in[0].shape().end() - 2), bs(in[1].shape().begin(), in[1].shape().end() - 2);
  Shape sa = broadcast_strides(as, g.batch), sb = broadcast_strides(bs, g.batch), sy = strides_of(g.batch);
  bool ta = at.i("ta"), tb = at.i("tb");
  auto count = static_cast<size_t>(num_elements(g.batch));
  for (size_t batch = 0; batch < count; ++batch) {
    int64_t rest = static_cast<int64_t>(batch), ia = 0, ib = 0;
    for (size_t d = 0; d < sy.size(); ++d) {
      ia += rest / sy[d] * sa[d];
      ib += rest / sy[d] * sb[d];
      rest %= sy[d];
    }
    const double* a = in[0].at.data() + ia * g.m * g.k;
    const double* b = in[1].at.data() + ib * g.k * g.n;
    double* y = out[0].at.data() + static_cast<int64_t>(batch) * g.m * g.n;
    for (int64_t i = 0; i < g.m; ++i) {
      double* row = y + i * g.n;
      if (tb) {
        for (int64_t j = 0; j < g.n; ++j)
          for (int64_t k = 0; k < g.k; ++k) row[j] += (ta ? a[k * g.m + i] : a[i * g.k + k]) * b[j * g.k + k];
      } else {
        for (int64_t k = 0; k < g.k; ++k) {
          double x = ta ? a[k * g.m + i] : a[i * g.k + k];
          for (int64_t j = 0; j < g.n; ++j) row[j] += x * b[k * g.n + j];
        }
      }
    }
  }
}

/// Reshapes x to a matrix by merging all dimensions but the last.
Value matrix_of(Value x) {
  const Shape& s = x.shape();
  return s.size() == 2 ? x : reshape(x, {num_elements(Shape(s.begin(), s.end() - 1)), s.back()});
}

Values vjp(const VjpContext& g) {
  bool ta = g.a.i("ta"), tb = g.a.i("tb");
  Value a = g.in[0], b = g.in[1], d = g.d[0];
  Value da, db;
  if (g.wants[0]) da = sum_to(ta ? matmul(b, d, tb, true) : matmul(d, b, false, !tb), a.shape());
  bool one_b = num_elements(Shape(b.shape().begin(), b.shape().end() - 2)) == 1;
  if (g.wants[1] && !ta && one_b && d.rank() > 2) {  // one product over all batches, instead of a sum of products
    Value x = matrix_of(a), y = matrix_of(d);
    db = reshape(tb ? matmul(y, x, true, false) : matmul(x, y, true, false), b.shape());
  } else if (g.wants[1]) {
    db = sum_to(tb ? matmul(d, a, true, ta) : matmul(a, d, !ta, false), b.shape());
  }
  return {da, db};
}

}  // namespace

const OpDef matmul_op{
    .name = "matmul",
    .doc = "y = a b over the last two dimensions (ta, tb = 1 transpose them first); leading dimensions broadcast",
    .inputs = {"a", "b"},
    .attrs = {{"ta", Ints{0}}, {"tb", Ints{0}}},
    .ordered = true,
    .infer = infer,
    .reference = reference,
    .vjp = vjp,
    .samples = {{.shapes = {{3, 4}, {4, 5}}},
                {.shapes = {{4, 3}, {4, 5}}, .attrs = {{"ta", Ints{1}}}},
                {.shapes = {{3, 4}, {5, 4}}, .attrs = {{"tb", Ints{1}}}},
                {.shapes = {{2, 4, 3}, {1, 5, 4}}, .attrs = {{"ta", Ints{1}}, {"tb", Ints{1}}}},
                {.shapes = {{2, 1, 3, 4}, {3, 4, 2}}},
                {.shapes = {{0, 3}, {3, 2}}},
                {.shapes = {{2, 0}, {0, 3}}},
                {.shapes = {{33, 130}, {130, 17}}},
                {.shapes = {{2, 3, 4}, {5, 4}}, .attrs = {{"tb", Ints{1}}}},
                {.shapes = {{2, 2, 3, 4}, {1, 4, 5}}}}};

}  // namespace tutti
