#include "graph/samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/philox.h"

namespace tutti {
namespace {

constexpr double kink_distance = 0.02;
constexpr size_t first_cotangent = 1u << 16;  // separates the streams of inputs and cotangents

uint32_t hash(std::string_view text) {  // FNV-1a
  uint32_t h = 2166136261u;
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return h;
}

/// Random numbers in (0, 1), one per element.
std::vector<double> uniforms(const OpDef& op, size_t n, size_t which, size_t tensor, uint64_t seed) {
  std::vector<double> u(n);
  uint32_t stream = hash(op.name) + static_cast<uint32_t>(tensor) * 0x9E3779B9u;
  for (size_t block = 0; block * 4 < n; ++block) {
    auto words = random_block(seed, static_cast<uint32_t>(which), stream, block);
    for (size_t k = 0; k < 4 && block * 4 + k < n; ++k) u[block * 4 + k] = (words[k] + 0.5) * 0x1p-32;
  }
  return u;
}

double away_from(double x, const std::vector<double>& kinks, Range range) {
  for (double kink : kinks) {
    if (std::fabs(x - kink) >= kink_distance) continue;
    bool up = x >= kink;
    if (kink + kink_distance > range.high) up = false;
    if (kink - kink_distance < range.low) up = true;
    x = kink + (up ? kink_distance : -kink_distance);
  }
  return x;
}

}  // namespace

Types sample_types(const Sample& sample, std::optional<DType> floats) {
  Types types;
  for (size_t i = 0; i < sample.shapes.size(); ++i) {
    DType t = i < sample.dtypes.size() ? sample.dtypes[i] : DType::f32;
    types.push_back({floats && is_float(t) ? *floats : t, sample.shapes[i]});
  }
  return types;
}

std::vector<Tensor> draw(const OpDef& op, const Sample& sample, size_t which, uint64_t seed,
                         std::optional<DType> floats) {
  std::vector<Tensor> inputs;
  for (const TensorType& type : sample_types(sample, floats)) {
    size_t i = inputs.size();
    Range range = i < sample.ranges.size() ? sample.ranges[i] : Range{sample.low, sample.high};
    Tensor x(type);
    std::vector<double> u = uniforms(op, x.at.size(), which, i, seed);
    if (is_float(type.dtype) && sample.distinct) {  // the sort order of random numbers is a random permutation
      std::vector<size_t> order(u.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return u[a] != u[b] ? u[a] < u[b] : a < b; });
      for (size_t k = 0; k < order.size(); ++k) u[order[k]] = (double(k) + 0.5) / double(order.size());
    }
    for (size_t e = 0; e < u.size(); ++e) {
      double v = range.low + u[e] * (range.high - range.low);
      if (type.dtype == DType::boolean)
        v = u[e] < 0.5;
      else if (is_integer(type.dtype))
        v = std::min(range.high, range.low + std::floor(u[e] * (range.high - range.low + 1)));
      else
        v = away_from(v, sample.kinks, range);
      x.at[e] = round_to(type.dtype, v);
    }
    inputs.push_back(std::move(x));
  }
  return inputs;
}

Tensor draw_cotangent(const OpDef& op, const TensorType& type, size_t which, size_t result, uint64_t seed) {
  Tensor d(type);
  std::vector<double> u = uniforms(op, d.at.size(), which, first_cotangent + result, seed);
  for (size_t e = 0; e < u.size(); ++e) {
    double v = 2 * u[e] - 1;
    d.at[e] = round_to(type.dtype, v < 0 ? -0.1 + 0.9 * v : 0.1 + 0.9 * v);
  }
  return d;
}

}  // namespace tutti
