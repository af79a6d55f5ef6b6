#include <algorithm>
#include <cmath>

#include "tests/codegen/cases.h"

namespace tutti::codegen::cases {
namespace {

using Axes = std::vector<int64_t>;

/// Calls visit(from, to, position along the reduced axes).
template <class F>
int64_t each_reduced(const Shape& shape, const Axes& axes, F visit) {
  Shape kept, order;
  std::vector<bool> gone(shape.size());
  for (int64_t a : axes) gone[static_cast<size_t>(a)] = true;
  int64_t results = 1;
  for (size_t d = 0; d < shape.size(); ++d) results *= gone[d] ? 1 : shape[d];
  Shape strides = strides_of(shape);
  for (int64_t e = 0; e < num_elements(shape); ++e) {
    int64_t rest = e, to = 0, at = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t c = rest / strides[d];
      rest %= strides[d];
      (gone[d] ? at : to) = (gone[d] ? at : to) * shape[d] + c;
    }
    visit(static_cast<size_t>(e), static_cast<size_t>(to), at);
  }
  return results;
}

Case reduced(ReduceOp kind, DType t, const Shape& shape, const Axes& axes) {
  const char* names[] = {"sum", "mean", "prod", "max", "min"};
  Case c{std::string(names[static_cast<int>(kind)]) + " " + to_string(TensorType{t, shape}) + " " + to_string(axes)};
  double low = kind == ReduceOp::prod ? 0.5 : -3, high = kind == ReduceOp::prod ? 1.5 : 3;
  if (t == DType::u8 || t == DType::u32) low = 0;
  c.inputs = {random(t, num_elements(shape), low, high, 9)};
  if (is_float(t) && kind != ReduceOp::prod && num_elements(shape) == 2 * 3 * 4) c.inputs[0].at[5] = NAN;
  int64_t n = each_reduced(shape, axes, [](size_t, size_t, int64_t) {});
  bool exact = kind == ReduceOp::max || kind == ReduceOp::min;
  if (auto& x = c.inputs[0].at; is_float(t) && exact && n > 1 && x.size() > 24) x[x.size() / 2 + 5] = x.back() = NAN;
  double start = kind == ReduceOp::prod  ? 1
                 : kind == ReduceOp::max ? (t == DType::i32 ? -2147483648.0
                                            : is_float(t)   ? -HUGE_VAL
                                                            : 0)
                 : kind == ReduceOp::min ? (t == DType::i32   ? 2147483647.0
                                            : t == DType::u8  ? 255
                                            : t == DType::u32 ? 4294967295.0
                                                              : HUGE_VAL)
                                         : 0;
  std::vector<double> y(static_cast<size_t>(n), start), size(static_cast<size_t>(n));
  double count = 0, largest = 0;
  each_reduced(shape, axes, [&](size_t from, size_t to, int64_t at) {
    double x = c.inputs[0].at[from];
    count = std::max(count, static_cast<double>(at + 1));
    size[to] += std::fabs(x);
    largest = std::max(largest, size[to]);
    switch (kind) {
      case ReduceOp::prod: y[to] *= x; break;
      case ReduceOp::max: y[to] = std::isnan(y[to]) || std::isnan(x) ? NAN : std::max(y[to], x); break;
      case ReduceOp::min: y[to] = std::isnan(y[to]) || std::isnan(x) ? NAN : std::min(y[to], x); break;
      default: y[to] += x;
    }
  });
  if (kind == ReduceOp::mean)
    for (double& v : y) v = is_float(t) ? v / count : std::trunc(v / count);
  for (double& v : y) v = round_to(t, v);
  c.expected = {{t, y}};
  c.relative = exact ? 0 : t == DType::f32 ? 2e-7 * std::sqrt(count + 4) : 1e-2;
  c.absolute = exact ? 0
                     : (kind == ReduceOp::sum    ? 2e-7 * largest
                        : kind == ReduceOp::mean ? 2e-7 * largest / std::max(count, 1.0)
                                                 : 0);
  c.make = [=](const Target& target) { return reduce(target, kind, {t, shape}, axes); };
  return c;
}

Case largest_at(DType t, const Shape& shape, const Axes& axes, bool with_nan) {
  Case c{"argmax " + to_string(TensorType{t, shape}) + " " + to_string(axes) + (with_nan ? " NaN" : "")};
  c.inputs = {
      random(t, num_elements(shape), t == DType::boolean || t == DType::u8 ? 0 : -3, t == DType::boolean ? 2 : 3, 13)};
  for (double& x : c.inputs[0].at)
    if (is_float(t)) x = std::floor(x * 8) / 8;  // many equal ones
  if (with_nan && c.inputs[0].at.size() > 3) c.inputs[0].at[1] = c.inputs[0].at[3] = NAN;
  int64_t n = each_reduced(shape, axes, [](size_t, size_t, int64_t) {});
  std::vector<double> y(static_cast<size_t>(n)), best(static_cast<size_t>(n));
  each_reduced(shape, axes, [&](size_t from, size_t to, int64_t at) {
    double x = c.inputs[0].at[from];
    bool better = x > best[to] || (std::isnan(x) && !std::isnan(best[to]));
    if (at == 0 || better) {
      best[to] = x;
      y[to] = static_cast<double>(at);
    }
  });
  c.expected = {{DType::i32, y}};
  c.make = [=](const Target& target) { return argmax(target, {t, shape}, axes); };
  return c;
}

}  // namespace

std::vector<Case> reduce_cases() {
  std::vector<Case> all;
  const std::vector<std::pair<Shape, Axes>> shapes = {{{}, {}},
                                                      {{1}, {0}},
                                                      {{7}, {0}},
                                                      {{7}, {}},
                                                      {{0}, {0}},
                                                      {{3, 0}, {1}},
                                                      {{0, 3}, {1}},
                                                      {{2, 3, 4}, {1}},
                                                      {{2, 3, 4}, {0, 2}},
                                                      {{2, 3, 4}, {0, 1, 2}},
                                                      {{5, 6, 7, 3}, {0, 2}},
                                                      {{64, 10}, {1}},
                                                      {{64, 10}, {0}},
                                                      {{33, 1000}, {1}},
                                                      {{1000, 33}, {0}},
                                                      {{70001}, {0}},
                                                      {{300000}, {0}},
                                                      {{5000, 3}, {0}},
                                                      {{3, 5000}, {1}},
                                                      {{5, 4099}, {1}},
                                                      {{40, 32}, {1}},
                                                      {{16, 8, 14, 14}, {0, 2, 3}},
                                                      {{2, 65, 3, 66}, {1, 3}}};
  for (auto& [shape, axes] : shapes) {
    for (ReduceOp kind : {ReduceOp::sum, ReduceOp::mean, ReduceOp::max, ReduceOp::min})
      all.push_back(reduced(kind, DType::f32, shape, axes));
    // Narrow elements by whole words; rows that begin between words; ends that fill none.
    if (shape == Shape{3, 5000} || shape == Shape{33, 1000} || shape == Shape{5, 4099} || shape == Shape{70001}) {
      for (DType t : {DType::bf16, DType::f16, DType::i32}) all.push_back(reduced(ReduceOp::max, t, shape, axes));
      all.push_back(reduced(ReduceOp::mean, DType::bf16, shape, axes));
      all.push_back(reduced(ReduceOp::sum, DType::i32, shape, axes));
      all.push_back(reduced(ReduceOp::max, DType::u8, shape, axes));
    }
    if (num_elements(shape) <= 24 || shape.size() == 4) {
      all.push_back(reduced(ReduceOp::prod, DType::f32, shape, axes));
      for (ReduceOp kind : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
        all.push_back(reduced(kind, DType::i32, shape, axes));
        all.push_back(reduced(kind, DType::bf16, shape, axes));
      }
      all.push_back(reduced(ReduceOp::max, DType::u8, shape, axes));
      all.push_back(reduced(ReduceOp::sum, DType::u32, shape, axes));
      all.push_back(reduced(ReduceOp::mean, DType::f16, shape, axes));
    }
    int64_t along = 1;
    for (int64_t a : axes) along *= shape[static_cast<size_t>(a)];
    if (along == 0) continue;
    all.push_back(largest_at(DType::f32, shape, axes, false));
    all.push_back(largest_at(DType::f32, shape, axes, true));
    if (num_elements(shape) <= 640) {
      all.push_back(largest_at(DType::i32, shape, axes, false));
      all.push_back(largest_at(DType::boolean, shape, axes, false));
      all.push_back(largest_at(DType::f16, shape, axes, true));
    }
  }
  return all;
}

}  // namespace tutti::codegen::cases
