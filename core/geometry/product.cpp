#include "core/geometry/product.h"

namespace tutti {
namespace {

/// The number of each matrix of a batch of `shape`, broadcast to `batch`.
std::vector<int64_t> matrices(const Shape& shape, const Shape& batch) {
  Shape strides = broadcast_strides(shape, batch);
  std::vector<int64_t> at(static_cast<size_t>(num_elements(batch)));
  for (size_t g = 0; g < at.size(); ++g) {
    auto rest = static_cast<int64_t>(g);
    for (size_t d = batch.size(); d-- > 0; rest /= batch[d]) at[g] += rest % batch[d] * strides[d];
  }
  return at;
}

}  // namespace

Shape ProductGeometry::result() const {
  Shape y = batch;
  y.push_back(m);
  y.push_back(n);
  return y;
}

ProductGeometry product_geometry(const Shape& a, const Shape& b, bool ta, bool tb) {
  Shape batch_a(a.begin(), a.end() - 2), batch_b(b.begin(), b.end() - 2);
  ProductGeometry g;
  g.m = a[a.size() - (ta ? 1 : 2)];
  g.k = a[a.size() - (ta ? 2 : 1)];
  g.n = b[b.size() - (tb ? 2 : 1)];
  g.a_matrices = num_elements(batch_a);
  g.b_matrices = num_elements(batch_b);
  g.batch = broadcast_shapes(batch_a, batch_b);
  g.a_of = matrices(batch_a, g.batch);
  g.b_of = matrices(batch_b, g.batch);
  return g;
}

}  // namespace tutti
