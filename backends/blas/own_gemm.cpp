#include <algorithm>
#include <vector>

#include "backends/blas/gemm.h"
#include "core/os/of_thread.h"
#include "kernels/cpu/isa_kernels.h"

namespace tutti::blas {
namespace {

constexpr int64_t panel_columns = kernels::max_columns, panel_depth = 256, row_block = 64;

/// Columns [column, column + wide) of rows [first, first + depth) of op(b), filled up with zeros.
void pack(const Gemm& p, int64_t first, int64_t depth, int64_t column, int64_t wide, float* panel) {
  for (int64_t k = 0; k < depth; ++k, panel += panel_columns) {
    const float* from = p.b + (p.tb ? column * p.ldb + first + k : (first + k) * p.ldb + column);
    for (int64_t j = 0; j < wide; ++j) panel[j] = from[p.tb ? j * p.ldb : j];
    std::fill(panel + wide, panel + panel_columns, 0.0f);
  }
}

struct Buffers {
  std::vector<float> panel = std::vector<float>(panel_depth * panel_columns);
  std::vector<float> sums = std::vector<float>(row_block * panel_columns);
};

}  // namespace

void own_gemm(const Gemm& p) {
  auto& [panel, sums] = os::of_this_thread<Buffers>();
  if (p.k == 0 && p.beta == 0)
    for (int64_t i = 0; i < p.m; ++i) std::fill_n(p.c + i * p.ldc, p.n, 0.0f);
  for (int64_t column = 0; column < p.n; column += panel_columns)
    for (int64_t first = 0; first < p.k; first += panel_depth) {
      const int64_t wide = std::min(panel_columns, p.n - column), depth = std::min(panel_depth, p.k - first);
      const bool whole = wide == panel_columns, adds = p.beta != 0 || first > 0;
      pack(p, first, depth, column, wide, panel.data());
      for (int64_t row = 0; row < p.m; row += row_block) {
        const int64_t rows = std::min(row_block, p.m - row);
        float* c = p.c + row * p.ldc + column;
        kernels::isa_kernels().block_product({.c = whole ? c : sums.data(),
                                              .c_row = whole ? p.ldc : panel_columns,
                                              .a = p.ta ? p.a + first * p.lda + row : p.a + row * p.lda + first,
                                              .a_row = p.ta ? 1 : p.lda,
                                              .a_step = p.ta ? p.lda : 1,
                                              .b = panel.data(),
                                              .b_row = panel_columns,
                                              .rows = rows,
                                              .depth = depth,
                                              .columns = panel_columns,
                                              .add = whole && adds});
        for (int64_t i = 0; i < rows && !whole; ++i)
          for (int64_t j = 0; j < wide; ++j)
            c[i * p.ldc + j] = (adds ? c[i * p.ldc + j] : 0) + sums[static_cast<size_t>(i * panel_columns + j)];
      }
    }
}

}  // namespace tutti::blas
