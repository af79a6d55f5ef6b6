#include "kernels/cpu/softmax.h"

#include <cmath>

#include "core/abi/tutti_plugin.h"
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/parallel.h"

namespace tutti::kernels {
namespace {

constexpr int64_t piece = 1024;

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
  LaneFn minus_scalar = isa_kernels().find(TUTTI_X_SUB, Lane::f32, Lane::f32, 2);
  LaneFn exp = isa_kernels().find(TUTTI_X_EXP, Lane::f32, Lane::f32, 0);
};

void row(const Loops& l, const float* x, float* y, int64_t n, bool logarithm) {
  float high = isa_kernels().fold_f32(ReduceOp::max, x, n), buffer[piece];
  double total = 0;
  for (int64_t at = 0; at < n; at += piece) {
    int64_t m = std::min(piece, n - at);
    float* e = logarithm ? buffer : y + at;
    l.minus_scalar(e, x + at, &high, nullptr, m);
    l.exp(e, e, nullptr, nullptr, m);
    total += sum_of(e, m);
  }
  if (logarithm) {
    double offset = std::log(total);  // x - high first: beside a large high it would be lost
    for (int64_t i = 0; i < n; ++i) {
      double below = static_cast<double>(x[i]) - static_cast<double>(high);
      y[i] = static_cast<float>(below - offset);
    }
  } else {
    double scale = 1 / total;
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(static_cast<double>(y[i]) * scale);
  }
}

}  // namespace

void softmax(const float* x, float* y, int64_t rows, int64_t n, bool logarithm, int threads) {
  Loops loops;
  share(rows, rows * n * 8, threads, [&](int64_t first, int64_t last, int) {
    for (int64_t k = first; k < last; ++k) row(loops, x + k * n, y + k * n, n, logarithm);
  });
}

}  // namespace tutti::kernels
