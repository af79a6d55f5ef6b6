#include "nn/rotary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/in_f32.h"
#include "graph/ops/cast.h"
#include "graph/ops/concat.h"
#include "graph/ops/cos.h"
#include "graph/ops/reshape.h"
#include "graph/ops/sin.h"
#include "graph/ops/slice.h"

namespace tutti::nn {
namespace {

/// Divides the frequencies of long wavelengths, with a smooth transition.
void scale_as_llama3(std::vector<double>& all, const Rotary& r) {
  const auto original = static_cast<double>(r.original);
  for (double& f : all) {
    double wavelength = 2 * std::numbers::pi / f;
    if (wavelength < original / r.high) continue;
    double smooth = wavelength > original / r.low ? 0 : (original / wavelength - r.low) / (r.high - r.low);
    f = (1 - smooth) * f / r.factor + smooth * f;
  }
}

void scale_as_yarn(std::vector<double>& all, const Rotary& r, int64_t size) {
  const auto n = static_cast<double>(size);
  auto pair_of = [&](double rotations) {
    return n * std::log(static_cast<double>(r.original) / (rotations * 2 * std::numbers::pi)) / (2 * std::log(r.base));
  };
  double low = pair_of(r.fast), high = pair_of(r.slow);
  if (r.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, n - 1);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < all.size(); ++i) {
    double scaled = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    all[i] = all[i] / r.factor * scaled + all[i] * (1 - scaled);
  }
}

}  // namespace

double yarn_magnitude(double factor, double m) { return factor <= 1 ? 1 : 0.1 * m * std::log(factor) + 1; }

std::vector<double> Rotary::frequencies(int64_t head, int64_t length) const {
  const int64_t n = size > 0 ? size : head;
  double b = base;
  if (scaling == Scaling::dynamic && length > original && n > 2)
    b *= std::pow(factor * static_cast<double>(length) / static_cast<double>(original) - (factor - 1),
                  static_cast<double>(n) / static_cast<double>(n - 2));
  std::vector<double> all(static_cast<size_t>(n / 2));
  for (size_t i = 0; i < all.size(); ++i) all[i] = std::pow(b, -2.0 * static_cast<double>(i) / static_cast<double>(n));
  const std::vector<double>& factors = length > original ? long_factors : short_factors;
  switch (scaling) {
    case Scaling::linear:
      for (double& f : all) f /= factor;
      break;
    case Scaling::yarn: scale_as_yarn(all, *this, n); break;
    case Scaling::llama3: scale_as_llama3(all, *this); break;
    case Scaling::longrope:
      if (factors.size() != all.size())
        throw invalid(fmt::format("longrope has {} factors, but {} pairs are rotated", factors.size(), all.size()));
      for (size_t i = 0; i < all.size(); ++i) all[i] /= factors[i];
      break;
    case Scaling::none:
    case Scaling::dynamic: break;
  }
  return all;
}

Value Rotary::forward(Builder& b, Value x) const {
  const Shape& s = x.shape();
  const int64_t n = size > 0 ? size : s.at(3);
  if (scaling == Scaling::none && n == s[3] && magnitude == 1)
    return rotary(x, {.base = base, .positions = b.positions(s[2])});
  int64_t length = s[2];
  if (b.cache()) {
    length = b.cache()->context();
    const bool changes = scaling == Scaling::dynamic || (scaling == Scaling::longrope && short_factors != long_factors);
    if (changes && length > original)
      throw invalid(fmt::format("the model rotates positions differently in sequences of more than {} tokens, so it "
                                "cannot generate token by token in a context of {}",
                                original, length),
                    option_text("context", original));
  }
  if (n < 2 || n % 2 != 0 || n > s[3])
    throw invalid(fmt::format("{} elements of a head of {} cannot be rotated in pairs", n, s[3]));
  DType t = wide(x.dtype());
  Value place = reshape(cast(b.positions(s[2]), t), {s[2], 1});
  Value angle = place * b.graph().constant(t, frequencies(s[3], length));
  Value c = cos(angle) * magnitude, m = sin(angle) * magnitude, y = wide(x);
  auto part = [&](int64_t from, int64_t to) { return slice(y, {0, 0, 0, from}, {s[0], s[1], s[2], to}); };
  Value low = part(0, n / 2), high = part(n / 2, n);
  Values parts = {low * c - high * m, high * c + low * m};
  if (n < s[3]) parts.push_back(part(n, s[3]));
  return cast(concat(parts, 3), x.dtype());
}

}  // namespace tutti::nn
