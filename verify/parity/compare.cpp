#include "verify/parity/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

namespace tutti::parity {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// The smallest normal number: devices may flush smaller ones to zero.
double smallest(DType t) {
  switch (t) {
    case DType::f16: return 0x1p-14;
    case DType::f64: return std::numeric_limits<double>::min();
    default: return 0x1p-126;
  }
}

/// The bound in ULPs. Devices compute in f32 and round to 16 bits when storing, so few ULPs suffice there. Some
/// functions are less accurate than others.
double factor(const OpDef& op, DType coarsest, bool gradient) {
  bool half = size_of(coarsest) == 2;
  if (op.name == "cast") return 1;  // one rounding forward, one back
  static const std::map<std::string, double> known = {{"pow", 4}, {"normal", 2}};
  auto it = known.find(op.name);
  return (half ? 2 : 8) * (gradient ? half ? 2 : 4 : 1) * (it == known.end() || half ? 1 : it->second);
}

double rms(const std::vector<double>& v) {
  double sum = 0, n = 0;
  for (double x : v)
    if (std::isfinite(x)) sum += x * x, ++n;
  return n == 0 ? 0 : std::sqrt(sum / n);
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

Difference judge(const Tensor& got, const Tensor& want, const Bound& bound, double scale, const Tensor* terms) {
  Difference d;
  double square = 0;
  size_t wrong = 0;
  auto size = [](double x) { return std::isfinite(x) ? std::abs(x) : 0; };
  auto allowed = [&](size_t i) {
    return bound.relative * (size(want.at[i]) + (terms ? size(terms->at[i]) : 0) + scale) + bound.absolute;
  };
  for (size_t i = 0; i < want.at.size(); ++i) {
    double a = got.at[i], b = want.at[i];
    if (same(a, b)) continue;
    double error = std::abs(a - b), share = bound.equal() ? infinite : error / allowed(i);
    if (!(share < infinite)) share = error = infinite;  // a NaN or an infinity on one side, or equality required
    wrong += !(share <= 1);
    square += error * error;
    if (share > d.share || (d.share == 0 && share > 0)) {
      d.share = share;
      d.at = i;
    }
    d.relative = std::max(d.relative, error / std::max(std::abs(b) + scale, smallest(DType::f64)));
  }
  if (wrong) {
    d.ok = false;
    d.text = fmt::format("{} of {} elements differ, worst at {}: {:.9g} against {:.9g}", wrong, want.at.size(), d.at,
                         got.at[d.at], want.at[d.at]);
    if (!bound.equal()) d.text += fmt::format(", {:.3g} times the bound {:.3g}", d.share, bound.relative);
    return d;
  }
  double n = static_cast<double>(want.at.size());
  auto norm = [&](const std::vector<double>& v) { return rms(v) * std::sqrt(n); };
  double limit = bound.relative / 2 * (norm(want.at) + (terms ? norm(terms->at) : 0) + scale * std::sqrt(n)) +
                 bound.absolute * std::sqrt(n);
  double error = std::sqrt(square);
  if (!(error <= limit)) {
    d.ok = false;
    d.share = std::max(d.share, error / limit);
    d.text = fmt::format("norm of the error {:.3g}, allowed {:.3g}", error, limit);
  }
  return d;
}

}  // namespace

double reduction_length(const Graph& g) {
  double longest = 1;
  auto size = [&](ValueId v) { return static_cast<double>(num_elements(g.info(v).type.shape)); };
  for (const Node& n : g.nodes()) {
    if (n.op->elementwise()) continue;
    double in = 0, out = 1;
    for (ValueId v : n.inputs) {
      in = std::max(in, size(v));
      const Shape& shape = g.info(v).type.shape;
      if (!shape.empty()) longest = std::max(longest, static_cast<double>(shape.back()));
    }
    for (ValueId v : n.results) out = std::max(out, size(v));
    longest = std::max(longest, in / out);
  }
  return longest;
}

Bound bound_of(const OpDef& op, const Graph& g, DType type, bool gradient) {
  if (op.exact || !is_float(type)) return {};
  double e = unit_roundoff(type);
  DType coarsest = type;
  for (const ValueInfo& v : g.values())
    if (is_float(v.type.dtype) && unit_roundoff(v.type.dtype) > e) e = unit_roundoff(coarsest = v.type.dtype);
  return {e * factor(op, coarsest, gradient) * (1 + std::sqrt(reduction_length(g))),
          std::max(smallest(type), smallest(coarsest))};
}

Difference compare(const Tensor& got, const Tensor& want, const Bound& bound,
                   const std::function<double()>& conditioning, const Tensor* terms) {
  if (got.type.shape != want.type.shape || got.type.dtype != want.type.dtype || got.at.size() != want.at.size())
    return {false, infinite, infinite, 0,
            fmt::format("the type is {}, expected {}", to_string(got.type), to_string(want.type))};
  double scale = rms(want.at);
  Difference d = judge(got, want, bound, scale, terms);
  if (d.ok || bound.equal() || !conditioning) return d;
  double inner = conditioning();
  return inner > scale ? judge(got, want, bound, inner, terms) : d;
}

Difference compare_bits(const Tensor& got, const Tensor& want) {
  Difference d;
  size_t wrong = 0;
  for (size_t i = 0; i < want.at.size(); ++i) {
    double a = got.at[i], b = want.at[i];
    if (same(a, b) && std::signbit(a) == std::signbit(b)) continue;
    if (std::isnan(a) && std::isnan(b)) continue;
    if (wrong++ == 0) d.at = i;
    d.relative = std::max(d.relative, std::abs(a - b) / std::max(std::abs(b), smallest(DType::f64)));
  }
  d.ok = wrong == 0;
  if (d.ok) return d;
  d.share = std::numeric_limits<double>::infinity();
  auto bits = [&](double x) { return std::bit_cast<uint32_t>(static_cast<float>(x)); };
  double a = got.at[d.at], b = want.at[d.at];
  d.text =
      fmt::format("{} of {} elements have other bits, the first is {}: {:#010x} ({:.9g}) against {:#010x} ({:.9g})",
                  wrong, want.at.size(), d.at, bits(a), a, bits(b), b);
  return d;
}

double norm_error(const Tensor& a, const Tensor& b, double least) {
  double diff = 0, norm = 0;
  for (size_t i = 0; i < b.at.size(); ++i) {
    if (same(a.at[i], b.at[i])) continue;
    diff += (a.at[i] - b.at[i]) * (a.at[i] - b.at[i]);
  }
  for (double x : b.at) norm += x * x;
  return std::sqrt(diff) / std::max({std::sqrt(norm), least, 1e-12});
}

}  // namespace tutti::parity
