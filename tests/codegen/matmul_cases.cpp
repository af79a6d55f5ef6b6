#include <cmath>

#include "sdk/library.h"
#include "tests/codegen/cases.h"

namespace tutti::codegen::cases {
namespace {

Case product(Matmul p, int64_t a_matrices, int64_t b_matrices) {
  Case c{"matmul " + std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k) + (p.ta ? " ta" : "") +
         (p.tb ? " tb" : "") + " batch " + to_string(p.batch) + (p.bias ? " bias" : "") + (p.relu ? " relu " : " ") +
         std::string(name(p.dtype))};
  c.inputs = {random(p.dtype, a_matrices * p.m * p.k, -1, 1, 1), random(p.dtype, b_matrices * p.k * p.n, -1, 1, 2)};
  if (p.bias) c.inputs.push_back(random(p.dtype, p.n, -1, 1, 3));
  int64_t batches = num_elements(p.batch);
  Shape dense = strides_of(p.batch);
  Array y{p.dtype, {}};
  for (int64_t g = 0; g < batches; ++g) {
    int64_t rest = g, fa = 0, fb = 0;
    for (size_t d = 0; d < p.batch.size(); ++d) {
      fa += rest / dense[d] * p.a_batch[d];
      fb += rest / dense[d] * p.b_batch[d];
      rest %= dense[d];
    }
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        double sum = p.bias ? c.inputs[2].at[static_cast<size_t>(j)] : 0;
        for (int64_t k = 0; k < p.k; ++k)
          sum += c.inputs[0].at[static_cast<size_t>(fa + (p.ta ? k * p.m + i : i * p.k + k))] *
                 c.inputs[1].at[static_cast<size_t>(fb + (p.tb ? j * p.k + k : k * p.n + j))];
        y.at.push_back(round_to(p.dtype, p.relu ? std::max(sum, 0.0) : sum));
      }
  }
  c.expected = {y};
  c.relative = p.dtype == DType::f32 ? 1e-6 : p.dtype == DType::f16 ? 2e-3 : 1e-2;
  c.absolute = (1e-6 + 6e-8 * static_cast<double>(p.k)) * (p.dtype == DType::f32 ? 1 : 10);
  c.make = [p](const Target& t) { return matmul(t, p); };
  c.by_library = [p](const sdk::Library& l) { return l.matmul(p); };
  return c;
}

/// y = s tanh(s) of the sums s = a b + bias, which are kept as a second result or not.
Case activated(Matmul p, bool keep) {
  Case c = product(p, 1, 1);
  c.name += keep ? " activation, kept" : " activation";
  Instructions code;
  uint32_t x = code.in(p.dtype, 0);
  code.out(p.dtype, code.add(TUTTI_X_MUL, p.dtype, x, code.add(TUTTI_X_TANH, p.dtype, x)));
  p.activation = code.list;
  p.keep = keep;
  Array y{p.dtype, {}};
  for (double s : c.expected[0].at) y.at.push_back(round_to(p.dtype, s * std::tanh(s)));
  c.expected.insert(c.expected.begin(), y);
  if (!keep) c.expected.pop_back();
  c.make = [p](const Target& t) { return matmul(t, p); };
  c.by_library = {};
  return c;
}

/// y = c > 0 ? s f : 0 of the sums s = a b + bias, with an element of c per result and one f for all.
Case gated(Matmul p) {
  Case c = product(p, 1, 1);
  c.name += " with other operands";
  Instructions code;
  const uint32_t s = code.in(p.dtype, 0), gate = code.in(p.dtype, 1), factor = code.in(DType::f32, 2);
  const uint32_t zero = code.constant(p.dtype, 0), open = code.add(TUTTI_X_LESS, DType::boolean, zero, gate);
  const uint32_t scaled = code.add(TUTTI_X_MUL, p.dtype, s, factor);
  code.out(p.dtype, code.add(TUTTI_X_SELECT, p.dtype, open, scaled, zero));
  p.activation = code.list;
  p.others = {{p.dtype, {1}}, {DType::f32, {0}}};
  Array gates = random(p.dtype, p.m * p.n, -1, 1, 4);
  for (size_t e = 0; e < gates.at.size(); ++e) c.expected[0].at[e] *= gates.at[e] > 0 ? 0.5 : 0;
  c.inputs.push_back(gates);
  c.inputs.push_back({DType::f32, {0.5}});
  c.make = [p](const Target& t) { return matmul(t, p); };
  c.by_library = {};
  return c;
}

/// A product and the sum of one of its operands over k.
Case summed(Matmul p, bool of_a, bool f32) {
  Case c = product(p, 1, 1);
  c.name += of_a ? " sum of a" : " sum of b";
  (of_a ? p.sum_a : p.sum_b) = true;
  p.sum_f32 = f32;
  const int64_t count = of_a ? p.m : p.n;
  const bool k_first = of_a ? p.ta : !p.tb;
  Array sums{f32 ? DType::f32 : p.dtype, {}};
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < p.k; ++k)
      sum += c.inputs[of_a ? 0 : 1].at[static_cast<size_t>(k_first ? k * count + i : i * p.k + k)];
    sums.at.push_back(round_to(p.dtype, sum));
  }
  c.expected.push_back(sums);
  c.make = [p](const Target& t) { return matmul(t, p); };
  c.by_library = {};
  c.runs = sums_operands;
  return c;
}

/// The case with large tiles on tensor cores, as on a device of one unit.
Case in_large_tiles(Case c) {
  c.name += " in large tiles";
  c.make = [make = c.make](const Target& t) {
    Target one = t;
    one.compute_units = 1;
    return make(one);
  };
  return c;
}

}  // namespace

std::vector<Case> matmul_cases() {
  std::vector<Case> all;
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (const Shape& s : std::vector<Shape>{{1, 1, 1},
                                               {3, 5, 4},
                                               {64, 64, 16},
                                               {65, 33, 130},
                                               {128, 10, 512},
                                               {10, 512, 128},
                                               {130, 200, 70},
                                               {0, 3, 2},
                                               {2, 3, 0},
                                               {1, 300, 77},
                                               {300, 1, 77},
                                               {17, 96, 1030}})
        all.push_back(product({DType::f32, s[0], s[1], s[2], ta, tb}, 1, 1));
  for (DType t : {DType::f16, DType::bf16})
    for (bool tb : {false, true}) all.push_back(product({t, 33, 65, 40, false, tb}, 1, 1));
  for (bool ta : {false, true}) {
    Matmul p{DType::f32, 3, 4, 5, ta, false, {2, 3}, {15, 0}, {60, 20}};
    all.push_back(product(p, 2, 6));
    Matmul q{DType::f32, 70, 65, 33, ta, true, {2, 1, 3}, {3 * 70 * 33, 0, 70 * 33}, {0, 0, 0}};
    all.push_back(product(q, 6, 1));
    Matmul r{DType::f32, 5, 4, 3, false, ta, {0}, {15}, {12}};
    all.push_back(product(r, 1, 1));
  }
  for (bool relu : {false, true})
    for (const Shape& s : std::vector<Shape>{{3, 5, 4}, {130, 200, 70}, {128, 10, 512}, {64, 48, 0}}) {
      Matmul p{DType::f32, s[0], s[1], s[2]};
      p.bias = true;
      p.relu = relu;
      all.push_back(product(p, 1, 1));
      p.bias = false;
      all.push_back(product(p, 1, 1));
    }
  return all;
}

std::vector<Case> activation_cases() {
  std::vector<Case> all;
  for (bool keep : {false, true})
    for (DType t : {DType::f32, DType::bf16})
      for (const Shape& s : std::vector<Shape>{{3, 5, 4}, {130, 70, 70}, {17, 10, 1030}, {128, 10, 1024}}) {
        Matmul p{t, s[0], s[1], s[2]};
        p.bias = s[0] != 128;
        all.push_back(activated(p, keep));
        if (!keep) all.push_back(gated(p));
      }
  for (bool of_a : {true, false})
    for (DType t : {DType::f32, DType::bf16})
      for (const Shape& s : std::vector<Shape>{{3, 5, 4}, {130, 70, 70}, {70, 130, 1030}})
        all.push_back(summed({t, s[0], s[1], s[2], s[0] != 3, s[0] == 3}, of_a, s[1] == 130 && t != DType::f32));
  return all;
}

std::vector<Case> tensor_core_product_cases(bool swapped) {
  std::vector<Case> all;
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      const bool bf16 = (ta == tb) != swapped;
      const DType t = bf16 ? DType::bf16 : DType::f16, other = bf16 ? DType::f16 : DType::bf16;
      all.push_back(product({t, 64, 64, 32, ta, tb}, 1, 1));
      all.push_back(product({t, 72, 40, 80, ta, tb}, 1, 1));
      all.push_back(product({other, 33, 65, 41, ta, tb}, 1, 1));
      all.push_back(product({t, 16, 24, 1104, ta, tb}, 1, 1));
      all.push_back(in_large_tiles(product({other, 80, 136, 40, ta, tb}, 1, 1)));
      Matmul batched{t, 16, 24, 32, ta, tb, {2, 2}, {512, 0}, {0, 768}};
      all.push_back(product(batched, 2, 2));
      Matmul biased{t, 40, 33, 64, ta, tb};
      biased.bias = biased.relu = true;
      all.push_back(product(biased, 1, 1));
      Matmul plain{t, 40, 48, 64, ta, tb};
      for (bool keep : {false, true}) all.push_back(activated(plain, keep));
      all.push_back(gated(plain));
      plain.n = 49;
      all.push_back(activated(plain, true));
      for (bool of_a : {false, true}) {
        all.push_back(summed({t, 72, 80, 48, ta, tb}, of_a, true));
        all.push_back(in_large_tiles(summed({other, 80, 136, 40, ta, tb}, of_a, false)));
        all.push_back(summed({t, 24, 16, 1104, ta, tb}, of_a, false));
      }
    }
  return all;
}

}  // namespace tutti::codegen::cases
