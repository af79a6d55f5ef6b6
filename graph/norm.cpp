#include "graph/norm.h"

#include <fmt/format.h>

#include <cmath>

#include "core/base/status.h"
#include "graph/in_f32.h"
#include "graph/ops/add.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/cast.h"
#include "graph/ops/mean.h"
#include "graph/ops/mul.h"
#include "graph/ops/reshape.h"
#include "graph/ops/rsqrt.h"
#include "graph/ops/sub.h"
#include "graph/ops/sum.h"

namespace tutti {
namespace {

void check_type(const char* what, const TensorType& t, const TensorType& x, const Shape& shape) {
  DType wide = statistics_dtype(x.dtype);
  if (t.shape == shape && (t.dtype == x.dtype || t.dtype == wide)) return;
  throw invalid(fmt::format("{} is {}, expected {}", what, to_string(t), to_string({wide, shape})));
}

void check_float(const TensorType& x) {
  if (!is_float(x.dtype)) throw invalid(fmt::format("x {} must have a float dtype", to_string(x)), "cast it to f32");
}

/// The axes of x along which a parameter is broadcast.
Ints repeated(const NormGeometry& g) {
  if (g.per_line) return g.axes;
  Ints axes;
  for (size_t a = 0; a + g.parameters.size() < g.kept.size(); ++a) axes.push_back(static_cast<int64_t>(a));
  return axes;
}

Value kept(const NormGeometry& g, Value statistic) { return reshape(widened(statistic), g.kept); }
Value parameter(const NormGeometry& g, Value p) { return g.per_line ? kept(g, p) : widened(p); }
Value result(const NormGeometry& g, Value statistic) { return reshape(statistic, g.statistics); }

}  // namespace

DType statistics_dtype(DType x) { return is_narrow(x) ? DType::f32 : x; }
Value widened(Value v) { return holds_narrow(v) ? cast(v, DType::f32) : v; }

Values norm_inputs(Value x, Value weight, Value bias) {
  Values in = {x};
  if (bias && !weight) weight = x.graph().full(bias.dtype(), 1, bias.shape());
  if (weight) in.push_back(weight);
  if (bias) in.push_back(bias);
  return in;
}

Types infer_norm(std::span<const TensorType> in, const NormGeometry& g, size_t statistics, size_t parameters) {
  check_float(in[0]);
  if (in.size() > 1 + parameters)
    throw invalid(fmt::format("{} inputs given, at most {} are expected", in.size(), 1 + parameters));
  for (size_t k = 1; k < in.size(); ++k) check_type(k == 1 ? "weight" : "bias", in[k], in[0], g.parameters);
  Types out(1 + statistics, {statistics_dtype(in[0].dtype), g.statistics});
  out[0] = in[0];
  return out;
}

Types infer_norm_dx(std::span<const TensorType> in, const NormGeometry& g, size_t statistics) {
  const TensorType& x = in[1];
  check_float(x);
  if (in[0] != x)
    throw invalid(fmt::format("d is {}, x is {}: their types must be equal", to_string(in[0]), to_string(x)));
  if (in.size() > 3 + statistics)
    throw invalid(fmt::format("{} inputs given, at most {} are expected", in.size(), 3 + statistics));
  for (size_t k = 0; k < statistics; ++k) check_type("a statistic", in[2 + k], x, g.statistics);
  if (in.size() == 3 + statistics) check_type("weight", in.back(), x, g.parameters);
  Types out(1 + statistics, {statistics_dtype(x.dtype), g.parameters});
  out[0] = x;
  return out;
}

NormReference norm_reference(const Norm& n, std::span<const Tensor> in, Tensor& y) {
  auto inner = static_cast<size_t>(n.g.inner), lines = static_cast<size_t>(n.g.lines);
  auto count = static_cast<double>(n.g.count());
  const std::vector<double>& x = in[0].at;
  auto line = [&](size_t e) { return e / inner % lines; };
  NormReference s{std::vector<double>(lines), std::vector<double>(lines)};
  if (n.centered) {
    for (size_t e = 0; e < x.size(); ++e) s.mean[line(e)] += x[e];
    for (double& m : s.mean) m = count > 0 ? m / count : 0;
  }
  for (size_t e = 0; e < x.size(); ++e) {
    double from_mean = x[e] - s.mean[line(e)];
    s.variance[line(e)] += from_mean * from_mean;
  }
  for (double& v : s.variance) v /= count;
  for (size_t e = 0; e < x.size(); ++e) {
    size_t l = line(e), p = n.g.per_line ? l : e % inner;
    y.at[e] = (x[e] - s.mean[l]) / std::sqrt(s.variance[l] + n.eps);
    if (in.size() > 1) y.at[e] *= in[1].at[p];
    if (in.size() > 2) y.at[e] += in[2].at[p];
  }
  return s;
}

void norm_dx_reference(const Norm& n, const Tensor& d, const Tensor& x, const std::vector<double>& mean,
                       const std::vector<double>& rstd, const Tensor* weight, std::span<Tensor> out) {
  auto inner = static_cast<size_t>(n.g.inner), lines = static_cast<size_t>(n.g.lines);
  auto count = static_cast<double>(n.g.count());
  std::vector<double> sum(lines), product(lines);
  auto each = [&](auto visit) {
    for (size_t e = 0; e < x.at.size(); ++e) {
      size_t l = e / inner % lines, p = n.g.per_line ? l : e % inner;
      double normal = (x.at[e] - (n.centered ? mean[l] : 0)) * rstd[l];
      visit(e, l, p, normal, d.at[e] * (weight ? weight->at[p] : 1));
    }
  };
  each([&](size_t e, size_t l, size_t p, double normal, double weighted) {
    if (n.centered) {
      sum[l] += weighted;
      out[2].at[p] += d.at[e];
    }
    product[l] += weighted * normal;
    out[1].at[p] += d.at[e] * normal;
  });
  each([&](size_t e, size_t l, size_t, double normal, double weighted) {
    out[0].at[e] = rstd[l] * (weighted - sum[l] / count - normal * product[l] / count);
  });
}

// Computes small tensors first, so that the passes over all of x are adjacent and can be fused.

Normalized normalized(const Norm& n, std::span<const Value> in) {
  const NormGeometry& g = n.g;
  Value x = widened(in[0]), m, weight, bias;
  if (in.size() > 1) weight = parameter(g, in[1]);
  if (in.size() > 2) bias = parameter(g, in[2]);
  if (n.centered) {
    m = g.count() == 0 ? x.graph().full(x.dtype(), 0, g.kept) : mean(x, g.axes, true);
    x = x - m;
  }
  Value variance = mean(x * x, g.axes, true), r = rsqrt(variance + n.eps);
  Normalized out = {{}, m ? result(g, m) : m, result(g, variance), result(g, r)};
  Value y = weight && g.per_line ? x * (r * weight) : x * r;
  if (weight && !g.per_line) y = y * weight;
  if (bias) y = y + bias;
  out.y = cast(y, in[0].dtype());
  return out;
}

Values norm_dx(const Norm& n, Value d, Value x, Value mean, Value rstd, Value weight) {
  const NormGeometry& g = n.g;
  DType dtype = x.dtype();
  Ints repeats = repeated(g);
  auto total = [&](Value v) { return repeats.empty() ? v : reshape(sum(v, repeats), g.parameters); };
  Value r = kept(g, rstd), scale = r;
  if (weight) weight = parameter(g, weight);
  if (n.centered) mean = kept(g, mean);
  double share = 1 / static_cast<double>(g.count());
  x = n.centered ? widened(x) - mean : widened(x);
  d = widened(d);
  // A weight per line is applied to the final result.
  Value weighted = weight && !g.per_line ? d * weight : d;
  if (weight && g.per_line) scale = r * weight;
  Value product = sum(weighted * x, g.axes, true), slope = product * (r * r * share), whole, shift;
  Values out = {{}, g.per_line ? reshape(product * r, g.parameters) : total(d * (x * r))};
  if (n.centered) {
    whole = sum(weighted, g.axes, true);
    shift = whole * share;
    out.push_back(g.per_line ? reshape(whole, g.parameters) : total(d));
  }
  Value dx = weighted - x * slope;
  if (shift) dx = dx - shift;
  out[0] = cast(dx * scale, dtype);
  return out;
}

Value statistics_dx(const Norm& n, Value x, Value mean, Value dmean, Value slope) {
  Value dx;
  if (slope) {
    Value from_mean = widened(x);
    if (n.centered) from_mean = from_mean - kept(n.g, mean);
    dx = kept(n.g, slope) * from_mean;
  }
  if (dmean) dx = dx ? dx + kept(n.g, dmean) : kept(n.g, dmean);
  if (!dx) return {};
  return cast(broadcast(dx * (1 / static_cast<double>(n.g.count())), x.shape()), x.dtype());
}

}  // namespace tutti
