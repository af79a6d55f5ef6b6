// Sorts and elements by index, against plain loops.
#include "kernels/cpu/sort.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "core/base/philox.h"
#include "core/base/shape.h"
#include "kernels/cpu/gather.h"

using namespace tutti;
using namespace tutti::kernels;

namespace {

std::vector<double> numbers(DType t, int64_t n) {
  std::vector<double> x;
  for (int64_t i = 0; i < n; ++i) {
    auto r = static_cast<double>((i * 7919 + i / 3) % 251) - 100;
    if (t == DType::u8 || t == DType::u32) r += 100;
    if (t == DType::boolean) r = std::fmod(std::fabs(r), 2);
    if (is_float(t))
      r = i % 17 == 3 ? NAN : i % 23 == 5 ? -INFINITY : i % 29 == 7 ? INFINITY : i % 13 == 1 ? -0.0 : r / 8;
    x.push_back(r);
  }
  return x;
}

void check(DType t, int64_t outer, int64_t size, int64_t inner, int64_t count, bool descending) {
  SCOPED_TRACE(std::string(name(t)) + " " + to_string(Shape{outer, size, inner, count, descending}));
  std::vector<double> x = numbers(t, outer * size * inner);
  std::vector<std::byte> stored(x.size() * size_of(t)), values(static_cast<size_t>(outer * count * inner) * size_of(t));
  for (size_t i = 0; i < x.size(); ++i) store_element(t, stored.data(), i, x[i]);
  std::vector<int32_t> indices(static_cast<size_t>(outer * count * inner));
  Sort s{t, outer, size, inner, count, descending};
  std::vector<uint64_t> scratch(s.scratch_bytes(2) / 8);
  s.run(stored.data(), values.data(), indices.data(), reinterpret_cast<std::byte*>(scratch.data()), 2);
  for (int64_t line = 0; line < outer * inner; ++line) {
    const double* from = x.data() + line / inner * size * inner + line % inner;
    std::vector<int64_t> want(static_cast<size_t>(size));
    std::iota(want.begin(), want.end(), 0);
    auto less = [](double p, double q) { return p < q || (q != q && p == p); };
    std::stable_sort(want.begin(), want.end(), [&](int64_t i, int64_t j) {
      double p = from[i * inner], q = from[j * inner];
      return descending ? less(q, p) : less(p, q);
    });
    for (int64_t i = 0; i < count; ++i) {
      auto at = static_cast<size_t>((line / inner * count + i) * inner + line % inner);
      ASSERT_EQ(indices[at], want[static_cast<size_t>(i)]) << line << " " << i;
      auto place = static_cast<size_t>(line / inner * size * inner + line % inner + indices[at] * inner);
      ASSERT_EQ(std::memcmp(&values[at * size_of(t)], &stored[place * size_of(t)], size_of(t)), 0) << line << " " << i;
    }
  }
}

TEST(Sort, equals_stable_sort) {
  for (DType t : {DType::f32, DType::f16, DType::bf16, DType::i32, DType::u32, DType::u8, DType::boolean})
    for (bool descending : {false, true}) {
      check(t, 3, 7, 1, 7, descending);
      check(t, 2, 40, 3, 4, descending);
      check(t, 1, 5000, 2, 5000, descending);
      check(t, 9, 4000, 1, 300, descending);
      check(t, 2, 1, 2, 1, descending);
      check(t, 2, 3, 2, 0, descending);
    }
}

TEST(Along, equals_plain_loops) {
  for (auto [outer, size, inner, count] : {std::tuple{3, 7, 2, 5}, {1, 40, 3000, 30}, {40, 30, 70, 33}, {2, 3, 4, 0}}) {
    auto n = static_cast<size_t>(outer * count * inner);
    std::vector<int32_t> index(n);
    std::vector<float> u(n), x(static_cast<size_t>(outer * size * inner)), y(x.size(), 7), want(x.size()), taken(n);
    for (size_t i = 0; i < n; ++i) index[i] = static_cast<int32_t>(i * 7919 % static_cast<size_t>(size + 4)) - 2;
    for (size_t i = 0; i < n; ++i) u[i] = static_cast<float>(i % 101) / 7;
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    add_along(index.data(), u.data(), y.data(), outer, size, inner, count, DType::f32, 2);
    take_along(x.data(), index.data(), taken.data(), outer, size, inner, count, 4, 2);
    for (size_t at = 0; at < n; ++at) {
      auto k = static_cast<int>(at) % inner, o = static_cast<int>(at) / inner / count;
      auto place = static_cast<size_t>((o * size + std::clamp(index[at], 0, size - 1)) * inner + k);
      want[place] += u[at];
      ASSERT_EQ(taken[at], x[place]);
    }
    EXPECT_EQ(y, want);
  }
}

}  // namespace
