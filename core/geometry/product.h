// matmul: products of matrices, whose leading dimensions broadcast.
#pragma once
#include <vector>

#include "core/base/shape.h"

namespace tutti {

/// y[g, i, j] = Σ over k of a[g, i, k] b[g, k, j].
struct ProductGeometry {
  int64_t m, n, k;
  int64_t a_matrices, b_matrices;   ///< how many each operand has
  Shape batch;                      ///< leading dimensions of y
  std::vector<int64_t> a_of, b_of;  ///< per matrix of y: the number of the matrix of a, and of b

  Shape result() const;
};

/// Row-major operands of rank 2 or more, stored transposed by `ta`, `tb`. Throws Error(invalid) if the leading
/// dimensions do not broadcast; the inner dimension is that of a.
ProductGeometry product_geometry(const Shape& a, const Shape& b, bool ta, bool tb);

}  // namespace tutti
