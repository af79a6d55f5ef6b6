#include "kernels/cpu/softmax.h"

#include <algorithm>
#include <cmath>

#include "core/abi/tutti_plugin.h"
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/parallel.h"

namespace tutti::kernels {
namespace {

constexpr int64_t softmax_piece = 1024;

/// The sum in float64, in eight interleaved parts.
double sum_of(const float* x, int64_t n) {
  double part[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int64_t k = 0; k < 8; ++k) part[k] += static_cast<double>(x[i + k]);
  for (int64_t k = 0; i + k < n; ++k) part[k] += static_cast<double>(x[i + k]);
  return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

struct Loops {
  LaneFn minus = isa_kernels().find(TUTTI_X_SUB, Lane::f32, Lane::f32, 0);
  LaneFn max = isa_kernels().find(TUTTI_X_MAX, Lane::f32, Lane::f32, 0);
  LaneFn minus_scalar = isa_kernels().find(TUTTI_X_SUB, Lane::f32, Lane::f32, 2);
  LaneFn exp = isa_kernels().find(TUTTI_X_EXP, Lane::f32, Lane::f32, 0);
};

void row(const Loops& l, const float* x, float* y, int64_t n, bool logarithm) {
  float high = isa_kernels().fold_f32(ReduceOp::max, x, n), buffer[softmax_piece];
  double total = 0;
  for (int64_t at = 0; at < n; at += softmax_piece) {
    int64_t m = std::min(softmax_piece, n - at);
    float* e = logarithm ? buffer : y + at;
    l.minus_scalar(e, x + at, &high, nullptr, m);
    l.exp(e, e, nullptr, nullptr, m);
    total += sum_of(e, m);
  }
  if (logarithm) {
    double offset = std::log(total);  // subtract high first; added to a large high, log(total) would be lost
    for (int64_t i = 0; i < n; ++i) {
      double below = static_cast<double>(x[i]) - static_cast<double>(high);
      y[i] = static_cast<float>(below - offset);
    }
  } else {
    double scale = 1 / total;
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(static_cast<double>(y[i]) * scale);
  }
}

/// `m` adjacent lines, at most `softmax_piece`, with element stride `step`.
void columns(const Loops& l, const float* x, float* y, int64_t n, int64_t m, int64_t step, bool logarithm) {
  float high[softmax_piece], buffer[softmax_piece];
  double total[softmax_piece] = {};
  std::copy_n(x, m, high);
  for (int64_t k = 1; k < n; ++k) l.max(high, high, x + k * step, nullptr, m);
  for (int64_t k = 0; k < n; ++k) {
    float* e = logarithm ? buffer : y + k * step;
    l.minus(e, x + k * step, high, nullptr, m);
    l.exp(e, e, nullptr, nullptr, m);
    for (int64_t i = 0; i < m; ++i) total[i] += static_cast<double>(e[i]);
  }
  for (int64_t i = 0; i < m; ++i) total[i] = logarithm ? std::log(total[i]) : 1 / total[i];
  for (int64_t k = 0; k < n; ++k) {
    const float* from = x + k * step;
    float* to = y + k * step;
    for (int64_t i = 0; i < m; ++i) {
      double value = logarithm ? (static_cast<double>(from[i]) - static_cast<double>(high[i])) - total[i]
                               : static_cast<double>(to[i]) * total[i];
      to[i] = static_cast<float>(value);
    }
  }
}

}  // namespace

void softmax(const float* x, float* y, const AxisGeometry& g, bool logarithm, int threads) {
  Loops loops;
  int64_t lines =
      g.inner == 1 ? 1 : (g.inner + softmax_piece - 1) / softmax_piece;  // blocks of lines per outer element
  share(g.outer * lines, g.outer * g.size * g.inner * 8, threads, [&](int64_t first, int64_t last, int) {
    for (int64_t k = first; k < last; ++k) {
      int64_t column = k % lines * softmax_piece, at = k / lines * g.size * g.inner + column;
      if (g.inner == 1)
        row(loops, x + at, y + at, g.size, logarithm);
      else
        columns(loops, x + at, y + at, g.size, std::min(softmax_piece, g.inner - column), g.inner, logarithm);
    }
  });
}

}  // namespace tutti::kernels
