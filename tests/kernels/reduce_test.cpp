// Reductions over odd shapes against float64, and their bits at several thread counts.
#include "kernels/cpu/reduce.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/philox.h"
#include "core/base/status.h"

using namespace tutti;
using namespace tutti::kernels;

namespace {

struct Layout {
  Shape shape;
  std::vector<int64_t> axes;
};

const std::vector<Layout> layouts = {{{3, 5}, {0, 1}},
                                     {{2, 3, 4}, {1}},
                                     {{2, 3, 4}, {0, 2}},
                                     {{4, 3, 2, 5}, {1, 3}},
                                     {{7, 1}, {1}},
                                     {{33, 130}, {0}},
                                     {{33, 130}, {1}},
                                     {{128, 2048}, {0}},
                                     {{8, 16, 28, 28}, {0, 2, 3}},
                                     {{100003}, {0}},
                                     {{5, 9001}, {1}},
                                     {{1000, 3}, {0}},
                                     {{2, 700, 3}, {1}},
                                     {{3, 5}, {}},
                                     {{1, 1}, {0, 1}},
                                     {{64, 10}, {1}},
                                     {{4, 0, 3}, {1}},
                                     {{0, 3}, {1}},
                                     {{6, 300, 2, 300}, {0, 1, 3}}};

double term(int64_t i, DType t) {
  double u = static_cast<double>(random_block(5, 0, 0, static_cast<uint64_t>(i))[0]) / 4294967296.0;
  return t == DType::boolean ? (u < 0.5 ? 0 : 1)
         : t == DType::u8    ? std::floor(u * 3)
         : t == DType::i32   ? std::floor(u * 201) - 100
                             : u * 2 - 1;
}

/// Calls visit(element of x, element of the result).
template <class F>
void each(const Layout& l, F visit) {
  Shape strides = strides_of(l.shape);
  for (int64_t i = 0; i < num_elements(l.shape); ++i) {
    int64_t to = 0;
    for (size_t d = 0; d < l.shape.size(); ++d)
      if (std::find(l.axes.begin(), l.axes.end(), static_cast<int64_t>(d)) == l.axes.end())
        to = to * l.shape[d] + i / strides[d] % l.shape[d];
    visit(i, to);
  }
}

void check(ReduceOp kind, DType t, const Layout& l) {
  int64_t results = 1, n = num_elements(l.shape);
  for (size_t d = 0; d < l.shape.size(); ++d)
    if (std::find(l.axes.begin(), l.axes.end(), static_cast<int64_t>(d)) == l.axes.end()) results *= l.shape[d];
  bool extreme = kind == ReduceOp::max || kind == ReduceOp::min;
  if (extreme && n == 0) return;
  std::vector<std::byte> x(static_cast<size_t>(n) * size_of(t)), first;
  bool product = kind == ReduceOp::prod;
  for (int64_t i = 0; i < n; ++i)
    store_element(t, x.data(), static_cast<size_t>(i), product ? 1 + term(i, DType::f32) * 1e-3 : term(i, t));
  std::vector<double> want(static_cast<size_t>(results), product ? 1 : 0), scale(want.size()), count(want.size());
  each(l, [&](int64_t i, int64_t to) {
    auto k = static_cast<size_t>(to);
    double v = load_element(t, x.data(), static_cast<size_t>(i));
    bool start = count[k]++ == 0;
    if (product)
      want[k] *= v;
    else if (extreme)
      want[k] = start ? v : kind == ReduceOp::max ? std::max(want[k], v) : std::min(want[k], v);
    else
      want[k] += v;
    scale[k] += std::fabs(v);
  });
  Reduce reduce(kind, {t, l.shape}, l.axes);
  for (int threads : {1, 2, 3}) {
    std::vector<std::byte> y(static_cast<size_t>(results) * size_of(t)), scratch(reduce.scratch_bytes(threads));
    reduce.run(x.data(), y.data(), scratch.data(), threads);
    if (threads == 1) first = y;
    ASSERT_TRUE(results == 0 || std::memcmp(y.data(), first.data(), y.size()) == 0)
        << "the bits depend on the thread count";
    for (int64_t k = 0; k < results; ++k) {
      auto i = static_cast<size_t>(k);
      double got = load_element(t, y.data(), i), truth = want[i],
             unit = t == DType::f32    ? 6e-8
                    : t == DType::bf16 ? 4e-3
                    : t == DType::f16  ? 5e-4
                                       : 0;
      double depth = 4 + std::log2(std::max(count[i], 1.0)) + (t == DType::f32 ? 30 : 0);
      double bound =
          product ? (4 + count[i]) * 6e-8 * std::fabs(truth) : scale[i] * 6e-8 * depth + std::fabs(truth) * unit;
      if (kind == ReduceOp::mean) truth /= count[i], bound /= std::max(count[i], 1.0);
      if (extreme) bound = 0;
      if (std::isnan(truth))
        ASSERT_TRUE(std::isnan(got));
      else
        ASSERT_LE(std::fabs(got - truth), bound)
            << to_string(l.shape) << " result " << k << ": " << got << ", expected " << truth;
    }
  }
}

TEST(Reduce, layouts) {
  for (const Layout& l : layouts)
    for (auto kind : {ReduceOp::sum, ReduceOp::mean, ReduceOp::prod, ReduceOp::max, ReduceOp::min}) {
      check(kind, DType::f32, l);
      if (HasFatalFailure()) FAIL() << "kind " << static_cast<int>(kind);
    }
}

TEST(Reduce, dtypes) {
  for (const Layout& l : {layouts[3], layouts[5], layouts[6], layouts[9], layouts[13]})
    for (DType t : {DType::bf16, DType::f16, DType::i32}) {
      check(ReduceOp::sum, t, l);
      check(ReduceOp::max, t, l);
      if (HasFatalFailure()) FAIL() << name(t);
    }
  check(ReduceOp::max, DType::u8, layouts[3]);
  check(ReduceOp::min, DType::boolean, layouts[5]);
}

TEST(Reduce, nan_wins) {
  std::vector<float> x(300, 1.0f);
  x[123] = NAN;
  for (auto kind : {ReduceOp::max, ReduceOp::min}) {
    Reduce rows(kind, {DType::f32, {3, 100}}, {1});
    std::vector<std::byte> scratch(rows.scratch_bytes(1));
    float y[3];
    rows.run(x.data(), y, scratch.data(), 1);
    EXPECT_TRUE(y[0] == 1 && std::isnan(y[1]) && y[2] == 1);
  }
}

TEST(Reduce, argmax) {
  for (const Layout& l : layouts) {
    if (num_elements(l.shape) == 0) continue;
    int64_t n = num_elements(l.shape), results = 0;
    std::vector<float> x(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i)
      x[static_cast<size_t>(i)] = static_cast<float>(std::floor(term(i, DType::f32) * 20));  // many equal ones
    if (n > 40) x[37] = NAN;
    each(l, [&](int64_t, int64_t to) { results = std::max(results, to + 1); });
    std::vector<int32_t> y(static_cast<size_t>(results), -1), want(y), seen(y.size());
    std::vector<float> best(y.size());
    each(l, [&](int64_t i, int64_t to) {
      auto k = static_cast<size_t>(to);
      float v = x[static_cast<size_t>(i)];
      if (seen[k] == 0 || (!std::isnan(best[k]) && (v > best[k] || std::isnan(v)))) best[k] = v, want[k] = seen[k];
      ++seen[k];
    });
    argmax({DType::f32, l.shape}, l.axes, x.data(), y.data(), 2);
    EXPECT_EQ(y, want) << to_string(l.shape);
  }
}

}  // namespace
