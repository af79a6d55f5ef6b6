#include "backends/reference/exact.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/geometry/copy.h"
#include "core/geometry/index.h"
#include "core/geometry/reduction.h"
#include "core/geometry/window.h"
#include "graph/eval.h"
#include "kernels/cpu/isa_kernels.h"

namespace tutti::reference {
namespace {

float f32(double x) { return static_cast<float>(x); }

/// The functions of kernels/portable/math.k in baseline code; all others are one rounding of the float64 result.
bool instruction(uint16_t code, double* y, const double* a, const double* b, size_t n) {
  if (code == TUTTI_X_RSQRT) {  // two roundings
    for (size_t i = 0; i < n; ++i) y[i] = 1.0f / std::sqrt(f32(a[i]));
    return true;
  }
  static const kernels::IsaKernels& baseline = *kernels::isa_kernels_named("baseline");
  kernels::LaneFn f = baseline.find_exact(code, 0);
  if (!f) return false;
  std::vector<float> p(a, a + n), q(b ? b : a, (b ? b : a) + n);
  f(p.data(), p.data(), q.data(), nullptr, static_cast<int64_t>(n));
  std::ranges::copy(p, y);
  return true;
}

/// Parts of exact_product_part terms, each in order from 0; the parts in order.
float sum_of_products(int64_t count, const std::function<float(int64_t)>& term) {
  float y = 0;
  for (int64_t part = 0; part < count; part += exact_product_part) {
    float sum = 0;
    for (int64_t k = part; k < std::min(count, part + exact_product_part); ++k) sum = f32(double{sum} + term(k));
    y = part ? f32(double{y} + sum) : sum;
  }
  return y;
}

void matmul(std::span<const Tensor> in, Tensor& y, const Attrs& attrs) {
  const Shape &a = in[0].shape(), &b = in[1].shape();
  bool ta = attrs.i("ta") != 0, tb = attrs.i("tb") != 0;
  int64_t m = a[a.size() - (ta ? 1 : 2)], depth = a[a.size() - (ta ? 2 : 1)], n = b[b.size() - (tb ? 2 : 1)];
  Shape batch(y.shape().begin(), y.shape().end() - 2);
  Shape sa = broadcast_strides(Shape(a.begin(), a.end() - 2), batch);
  Shape sb = broadcast_strides(Shape(b.begin(), b.end() - 2), batch);
  for (int64_t e = 0; e < num_elements(y.shape()); ++e) {
    int64_t j = e % n, i = e / n % m, rest = e / n / m, from_a = 0, from_b = 0;
    for (size_t d = batch.size(); d-- > 0; rest /= batch[d]) {
      from_a += rest % batch[d] * sa[d] * m * depth;
      from_b += rest % batch[d] * sb[d] * depth * n;
    }
    y.at[static_cast<size_t>(e)] = sum_of_products(depth, [&](int64_t k) {
      double p = in[0].at[static_cast<size_t>(from_a + (ta ? k * m + i : i * depth + k))];
      return f32(p * in[1].at[static_cast<size_t>(from_b + (tb ? j * depth + k : k * n + j))]);
    });
  }
}

float fold(ReduceOp kind, float a, float b) {
  switch (kind) {
    case ReduceOp::prod: return f32(double{a} * b);
    case ReduceOp::max: return a > b || a != a ? a : b;
    case ReduceOp::min: return a < b || a != a ? a : b;
    default: return f32(double{a} + b);
  }
}

float neutral(ReduceOp kind) {
  return kind == ReduceOp::prod ? 1.0f : kind == ReduceOp::max ? -HUGE_VALF : kind == ReduceOp::min ? HUGE_VALF : 0.0f;
}

/// One result of a stage: pieces in 16 lanes, then the pieces in the same way.
float folded(ReduceOp kind, std::vector<float> x) {
  do {
    std::vector<float> pieces;
    for (size_t first = 0; first < x.size() || pieces.empty(); first += exact_sum_piece) {
      float lanes[exact_sum_lanes];
      std::ranges::fill(lanes, neutral(kind));
      for (size_t i = first; i < std::min<size_t>(x.size(), first + exact_sum_piece); ++i) {
        float& lane = lanes[(i - first) % exact_sum_lanes];
        lane = fold(kind, lane, x[i]);
      }
      for (size_t half = exact_sum_lanes / 2; half > 0; half /= 2)
        for (size_t l = 0; l < half; ++l) lanes[l] = fold(kind, lanes[l], lanes[l + half]);
      pieces.push_back(lanes[0]);
    }
    x = std::move(pieces);
  } while (x.size() > 1);
  return x[0];
}

void reduce(ReduceOp kind, const Tensor& x, Tensor& y, const Attrs& attrs) {
  std::vector<double> at = x.at;
  if (at.empty()) {
    std::ranges::fill(y.at, neutral(kind));
    return;
  }
  std::vector<ReductionStage> stages = reduction_stages(x.shape(), reduction_geometry(x.shape(), attrs).axes);
  if (stages.empty()) stages.push_back({static_cast<int64_t>(at.size()), 1, 1});
  for (const ReductionStage& s : stages) {
    std::vector<double> to;
    for (int64_t a = 0; a < s.a; ++a)
      for (int64_t b = 0; b < s.b; ++b) {
        std::vector<float> line;
        for (int64_t r = 0; r < s.r; ++r) line.push_back(f32(at[static_cast<size_t>((a * s.r + r) * s.b + b)]));
        to.push_back(folded(kind, std::move(line)));
      }
    at = std::move(to);
  }
  y.at = std::move(at);
}

/// y[row of i] += u[i] in the order of i.
void scatter(const Tensor& index, const Tensor& u, Tensor& y, const IndexGeometry& g, bool along) {
  std::ranges::fill(y.at, 0.0);
  for (int64_t o = 0; o < g.outer; ++o)
    for (int64_t i = 0; i < g.count; ++i)
      for (int64_t k = 0; k < g.inner; ++k) {
        auto from = static_cast<size_t>((o * g.count + i) * g.inner + k);
        auto row = static_cast<int64_t>(index.at[along ? from : static_cast<size_t>(i)]);
        auto to = static_cast<size_t>((o * g.size + std::clamp<int64_t>(row, 0, g.size - 1)) * g.inner + k);
        y.at[to] = f32(y.at[to] + u.at[from]);
      }
}

/// y[pixel] += the windows that hold it, in the order of (ky, kx).
void add_windows(const Tensor& x, Tensor& y, const Attrs& attrs) {
  WindowGeometry g = fold_geometry(x.shape(), attrs);
  std::ranges::fill(y.at, 0.0);
  size_t from = 0;
  for (int64_t plane = 0; plane < g.planes(); ++plane)
    for (int64_t ky = 0; ky < g.h.kernel; ++ky)
      for (int64_t kx = 0; kx < g.w.kernel; ++kx)
        for (int64_t oh = 0; oh < g.h.count; ++oh)
          for (int64_t ow = 0; ow < g.w.count; ++ow, ++from) {
            int64_t h = oh * g.h.stride + ky * g.h.dilation - g.h.padding;
            int64_t w = ow * g.w.stride + kx * g.w.dilation - g.w.padding;
            if (h < 0 || h >= g.h.size || w < 0 || w >= g.w.size) continue;
            double& to = y.at[static_cast<size_t>((plane * g.h.size + h) * g.w.size + w)];
            to = f32(to + x.at[from]);
          }
}

}  // namespace

std::vector<Tensor> evaluate_exact(const Expr& expr, std::span<const Tensor> in, const Shape& shape) {
  return evaluate(expr, in, shape, true, instruction);
}

std::vector<Tensor> evaluate_exact(const OpDef& op, std::span<const Tensor> in, const Attrs& attrs) {
  std::vector<TensorType> types;
  std::vector<DType> dtypes;
  for (const Tensor& x : in) types.push_back(x.type), dtypes.push_back(x.type.dtype);
  Types results = infer_types(op, types, attrs);
  if (op.elementwise()) return evaluate_exact(expr_of(op, dtypes, attrs), in, results[0].shape);
  bool real = is_float(results[0].dtype);
  std::vector<Tensor> out = {Tensor(results[0])};
  if (real && op.name == "matmul")
    matmul(in, out[0], attrs);
  else if (auto kind = reduce_op(op.name); real && kind)
    reduce(*kind, in[0], out[0], attrs);
  else if (real && op.name == "scatter_add")
    scatter(in[0], in[1], out[0], scatter_geometry(types[0], types[1], attrs), false);
  else if (real && op.name == "add_along_axis")
    scatter(in[0], in[1], out[0], add_along_geometry(types[0], types[1], attrs), true);
  else if (real && op.name == "fold")
    add_windows(in[0], out[0], attrs);
  else
    return evaluate(op, in, attrs);  // moves elements, or computes with integers
  return out;
}

}  // namespace tutti::reference
