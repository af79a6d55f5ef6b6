#include <algorithm>
#include <cmath>

#include "core/base/instr.h"
#include "core/geometry/reduction.h"
#include "kernels/codegen/kernel.h"
#include "tests/codegen/cases.h"

namespace tutti::codegen::cases {
namespace {

uint32_t fold(Instructions& code, ReduceOp kind, DType t, uint32_t at) {
  return code.add(instr::fold, t, at, static_cast<uint32_t>(kind));
}

/// Targets of CPUs and with little shared memory that have no kernel get that of a GPU.
std::function<LaunchList(const Target&)> made(const RowProgram& p) {
  return [p](Target t) {
    auto has = [&](uint16_t code) {
      return std::ranges::any_of(p.code, [&](const TuttiInstr& x) { return x.code == code; });
    };
    if (!runs_rows(t, {p.rows(), p.length, p.segment, has(instr::fold), has(instr::column)})) {
      t.cpu_like = false;
      t.local_bytes = 32768;
    }
    if (!t.cpu_like) t.compute_units = 20;
    return row_program(t, p);
  };
}

/// y = softmax(mask ? x : 0) * s + g with s per row and g per column; z = log sum exp; m = mean. The mask is broadcast
/// along the second dimension.
Case softmax(DType t, const Shape& outer, int64_t length) {
  Case c{"softmax " + to_string(TensorType{t, outer}) + " of " + std::to_string(length)};
  int64_t rows = num_elements(outer), masks = outer[0];
  constexpr DType f = DType::f32;
  c.inputs = {random(t, rows * length, -4, 4, 3), random(f, rows, -2, 2, 4), random(t, length, -1, 1, 5),
              random(DType::boolean, masks * length, 0, 2, 6)};
  RowProgram p;
  p.outer = outer;
  p.length = length;
  p.in = {{t, {outer[1] * length, length, 1}}, {f, {outer[1], 1, 0}}, {t, {0, 0, 1}}, {DType::boolean, {length, 0, 1}}};
  p.out = {t, f, f};
  Instructions code;
  uint32_t x = code.in(t, 0), s = code.in(f, 1), g = code.in(t, 2), mask = code.in(DType::boolean, 3);
  x = code.add(TUTTI_X_SELECT, f, mask, x, code.constant(f, 0));
  uint32_t most = fold(code, ReduceOp::max, f, x), mean = fold(code, ReduceOp::mean, f, x);
  uint32_t e = code.add(TUTTI_X_EXP, f, code.add(TUTTI_X_SUB, f, x, most));
  uint32_t z = fold(code, ReduceOp::sum, f, e);
  uint32_t y = code.add(TUTTI_X_MUL, f, code.add(TUTTI_X_DIV, f, e, z), s);
  code.out(t, code.add(TUTTI_X_ADD, f, y, g), 0);
  code.out(f, code.add(TUTTI_X_ADD, f, code.add(TUTTI_X_LOG, f, z), most), 1);
  code.out(f, mean, 2);
  p.code = code.list;
  c.make = made(p);
  Array all{t, {}}, sums{f, {}}, means{f, {}};
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<double> row;
    for (int64_t k = 0; k < length; ++k)
      row.push_back(c.inputs[3].at[static_cast<size_t>(r / outer[1] * length + k)] != 0
                        ? c.inputs[0].at[static_cast<size_t>(r * length + k)]
                        : 0);
    double largest = *std::ranges::max_element(row), sum = 0, total = 0;
    for (double v : row) sum += std::exp(v - largest), total += v;
    for (size_t k = 0; k < row.size(); ++k)
      all.at.push_back(std::exp(row[k] - largest) / sum * c.inputs[1].at[static_cast<size_t>(r)] + c.inputs[2].at[k]);
    sums.at.push_back(std::log(sum) + largest);
    means.at.push_back(total / static_cast<double>(length));
  }
  c.expected = {all, sums, means};
  c.relative = t == f ? 3e-6 : 8e-3;
  c.absolute = t == f ? 3e-6 : 4e-3;
  return c;
}

/// y = x - min(x), and the row's sum, which wraps.
Case integers(int64_t rows, int64_t length) {
  constexpr DType t = DType::i32;
  Case c{"integers " + std::to_string(rows) + " x " + std::to_string(length)};
  c.inputs = {random(t, rows * length, -2e9, 0, 8)};
  RowProgram p;
  p.outer = {rows};
  p.length = length;
  p.in = {{t, {length, 1}}};
  p.out = {t, t};
  Instructions code;
  uint32_t x = code.in(t, 0), least = fold(code, ReduceOp::min, t, x);
  code.out(t, code.add(TUTTI_X_SUB, t, x, least), 0);
  code.out(t, fold(code, ReduceOp::sum, t, x), 1);
  p.code = code.list;
  c.make = made(p);
  Array y{t, {}}, sums{t, {}};
  for (int64_t r = 0; r < rows; ++r) {
    auto first = c.inputs[0].at.begin() + r * length;
    double least_of_row = *std::min_element(first, first + length);
    int64_t sum = 0;
    for (int64_t k = 0; k < length; ++k) y.at.push_back(first[k] - least_of_row), sum += static_cast<int64_t>(first[k]);
    sums.at.push_back(static_cast<int32_t>(static_cast<uint32_t>(sum)));
  }
  c.expected = {y, sums};
  return c;
}

/// Batch norm of [n, rows, segment] per row: y = (x - mean) / sqrt(variance + 0.1) * w, the variance, and 0.9 old + 0.1
/// mean.
Case channels(DType t, int64_t n, int64_t rows, int64_t segment) {
  Case c{"channels of " + to_string(TensorType{t, {n, rows, segment}})};
  constexpr DType f = DType::f32;
  c.inputs = {random(t, n * rows * segment, 2, 5, 23), random(t, rows, 1, 2, 24), random(f, rows, -1, 1, 25)};
  RowProgram p;
  p.outer = {rows};
  p.length = n * segment;
  p.segment = segment;
  p.in = {{t, {segment, 1}}, {t, {1, 0}}, {f, {1, 0}}};
  p.out = {t, f, f};
  Instructions code;
  uint32_t x = code.in(t, 0), w = code.in(t, 1), old = code.in(f, 2), mean = fold(code, ReduceOp::mean, f, x);
  uint32_t d = code.add(TUTTI_X_SUB, f, x, mean);
  uint32_t variance = fold(code, ReduceOp::mean, f, code.add(TUTTI_X_MUL, f, d, d));
  uint32_t r = code.add(TUTTI_X_RSQRT, f, code.add(TUTTI_X_ADD, f, variance, code.constant(f, 0.1)));
  code.out(t, code.add(TUTTI_X_MUL, f, d, code.add(TUTTI_X_MUL, f, r, w)), 0);
  code.out(f, variance, 1);
  uint32_t kept = code.add(TUTTI_X_MUL, f, old, code.constant(f, 0.9));
  code.out(f, code.add(TUTTI_X_ADD, f, kept, code.add(TUTTI_X_MUL, f, mean, code.constant(f, 0.1))), 2);
  p.code = code.list;
  c.make = made(p);
  Array y{t, std::vector<double>(c.inputs[0].at.size())}, variances{f, {}}, means{f, {}};
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<size_t> at;
    for (int64_t k = 0; k < p.length; ++k)
      at.push_back(static_cast<size_t>((k / segment * rows + row) * segment + k % segment));
    double count = static_cast<double>(p.length), center = 0, spread = 0;
    for (size_t k : at) center += c.inputs[0].at[k] / count;
    for (size_t k : at) spread += (c.inputs[0].at[k] - center) * (c.inputs[0].at[k] - center) / count;
    double scale = c.inputs[1].at[static_cast<size_t>(row)] / std::sqrt(spread + 0.1);
    for (size_t k : at) y.at[k] = (c.inputs[0].at[k] - center) * scale;
    variances.at.push_back(spread);
    means.at.push_back(0.9 * c.inputs[2].at[static_cast<size_t>(row)] + 0.1 * center);
  }
  c.expected = {y, variances, means};
  c.relative = t == f ? 2e-5 : 8e-3;
  c.absolute = t == f ? 2e-5 : 4e-3;
  return c;
}

}  // namespace

/// Column folds of v = x * s, or of v = x * s - mean(x * s) if `folds`: g * sum + 3 in dtype t, the mean, and the
/// largest element of x. v is stored too.
Case columns(DType t, int64_t rows, int64_t length, bool folds) {
  Case c{"columns of " + to_string(TensorType{t, {rows, length}}) + (folds ? " and rows" : "")};
  constexpr DType f = DType::f32;
  c.inputs = {random(t, rows * length, -4, 4, 13), random(f, rows, 1, 2, 14), random(t, length, 1, 2, 15),
              random(f, 1, 3, 3, 16)};
  RowProgram p;
  p.outer = {rows};
  p.length = length;
  p.in = {{t, {length, 1}}, {f, {1, 0}}, {t, {0, 1}}, {f, {0, 0}}};
  p.out = {t, f, f, f};
  Instructions code;
  auto column = [&](ReduceOp kind, uint32_t at) { return code.add(instr::column, f, at, static_cast<uint32_t>(kind)); };
  uint32_t x = code.in(t, 0), s = code.in(f, 1), g = code.in(t, 2), three = code.in(f, 3);
  uint32_t v = code.add(TUTTI_X_MUL, f, x, s);
  if (folds) v = code.add(TUTTI_X_SUB, f, v, fold(code, ReduceOp::mean, f, v));
  uint32_t sum = code.add(TUTTI_X_MUL, f, column(ReduceOp::sum, v), g);
  code.out(t, code.add(TUTTI_X_ADD, f, sum, three), 0);
  code.out(f, column(ReduceOp::mean, v), 1);
  code.out(f, v, 2);
  code.out(f, column(ReduceOp::max, x), 3);
  p.code = code.list;
  c.make = made(p);
  auto at = [](const Array& a, int64_t k) { return a.at[static_cast<size_t>(k)]; };
  Array sums{t, {}}, means{f, {}}, all{f, {}}, most{f, {}};
  for (int64_t r = 0; r < rows; ++r) {
    double mean = 0;
    for (int64_t k = 0; k < length; ++k) {
      all.at.push_back(at(c.inputs[0], r * length + k) * at(c.inputs[1], r));
      mean += all.at.back() / static_cast<double>(length);
    }
    for (int64_t k = 0; folds && k < length; ++k) all.at[static_cast<size_t>(r * length + k)] -= mean;
  }
  for (int64_t k = 0; k < length; ++k) {
    double total = 0, largest = -HUGE_VAL;
    for (int64_t r = 0; r < rows; ++r) {
      total += at(all, r * length + k);
      largest = std::max(largest, at(c.inputs[0], r * length + k));
    }
    sums.at.push_back(total * at(c.inputs[2], k) + 3);
    means.at.push_back(total / static_cast<double>(rows));
    most.at.push_back(largest);
  }
  c.expected = {sums, means, all, most};
  c.relative = t == f ? 1e-5 : 8e-3;
  c.absolute = t == f ? 1e-4 : 4e-3;
  return c;
}

/// Lengths that fit into the work-items' registers or do not, in whole vectors or not.
std::vector<Case> row_cases() {
  std::vector<Case> all;
  for (int64_t length : {4999, 5000}) all.push_back(softmax(DType::f32, {2, 64}, length));
  for (int64_t length : {7, 24, 100, 512, 1000}) all.push_back(softmax(DType::f32, {3, 5}, length));
  for (int64_t length : {24, 33, 2052}) all.push_back(softmax(DType::bf16, {2, 4}, length));
  all.push_back(softmax(DType::f16, {2, 4}, 100));
  all.push_back(integers(6, 33));
  all.push_back(integers(1, 2000));
  for (bool folds : {false, true}) {
    for (int64_t length : {7, 24, 200}) all.push_back(columns(DType::f32, 60, length, folds));
    all.push_back(columns(DType::bf16, 300, 24, folds));  // as many groups as fill the device, in turns
    all.push_back(columns(DType::bf16, 2, 36, folds));    // one group
    all.push_back(columns(DType::f32, 201, 33, folds));   // rows one by one
  }
  all.push_back(channels(DType::f32, 6, 8, 16));  // in registers
  all.push_back(channels(DType::f32, 3, 5, 49));
  all.push_back(channels(DType::bf16, 30, 3, 256));   // in a loop
  all.push_back(channels(DType::f32, 50, 3, 15000));  // shared by several groups
  all.push_back(channels(DType::bf16, 60, 5, 7001));
  all.push_back(columns(DType::f32, 40, 1200, true));  // more elements per work-item
  return all;
}

}  // namespace tutti::codegen::cases
