// The evaluator against a plain scalar loop: random expressions over odd shapes, broadcasts and storages; exact bits.
#include "kernels/cpu/eval.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/philox.h"
#include "core/base/status.h"

using namespace tutti;
using namespace tutti::kernels;

namespace {

/// A small deterministic source of choices.
class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  uint32_t word() { return random_block(seed_, 0, 0, at_++)[0]; }
  uint32_t below(uint32_t n) { return word() % n; }
  float real() { return static_cast<float>(word() >> 8) / 4194304.0f - 2.0f; }

 private:
  uint64_t seed_, at_ = 0;
};

TuttiInstr constant(double x, DType t) {
  auto bits = std::bit_cast<uint64_t>(x);
  return {TUTTI_X_CONST, static_cast<uint16_t>(t), static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32), 0};
}
TuttiInstr instr(uint16_t code, DType t, uint32_t a, uint32_t b = 0, uint32_t c = 0) {
  return {code, static_cast<uint16_t>(t), a, b, c};
}

struct Array {
  DType t;
  Shape shape;
  std::vector<std::byte> data;
  Array(DType t, Shape shape) : t(t), shape(std::move(shape)), data(num_bytes({t, this->shape})) {}
  double at(int64_t i) const { return load_element(t, data.data(), static_cast<size_t>(i)); }
};

/// One instruction on scalars, in float arithmetic.
double scalar(const TuttiInstr& i, double a, double b, double c) {
  auto p = static_cast<float>(a), q = static_cast<float>(b);
  switch (i.code) {
    case TUTTI_X_ADD: return p + q;
    case TUTTI_X_SUB: return p - q;
    case TUTTI_X_MUL: return p * q;
    case TUTTI_X_DIV: return p / q;
    case TUTTI_X_NEG: return -p;
    case TUTTI_X_ABS: return std::fabs(p);
    case TUTTI_X_MIN: return std::isnan(p) || std::isnan(q) ? NAN : std::min(p, q);
    case TUTTI_X_MAX: return std::isnan(p) || std::isnan(q) ? NAN : std::max(p, q);
    case TUTTI_X_SQRT: return std::sqrt(p);
    case TUTTI_X_LESS: return a < b;
    case TUTTI_X_LESS_EQUAL: return a <= b;
    case TUTTI_X_EQUAL: return a == b;
    case TUTTI_X_SELECT: return a != 0 ? b : c;
    case TUTTI_X_NOT: return a == 0;
    case TUTTI_X_CAST: return round_to(static_cast<DType>(i.dtype), a);
    default: ADD_FAILURE() << "instruction " << i.code; return 0;
  }
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

struct Expression {
  std::vector<TuttiInstr> code;
  std::vector<DType> out;
};

/// Random float instructions over the inputs (whose dtypes are given), with comparisons, selects and casts between.
Expression random_expression(Dice& dice, const std::vector<DType>& in, uint32_t length, uint32_t outputs) {
  Expression e;
  std::vector<uint32_t> floats, bools;
  for (uint32_t k = 0; k < in.size(); ++k) {
    e.code.push_back(instr(TUTTI_X_INPUT, in[k], k));
    auto at = static_cast<uint32_t>(e.code.size() - 1);
    if (in[k] != DType::f32) {
      e.code.push_back(instr(TUTTI_X_CAST, DType::f32, at));
      if (in[k] == DType::boolean) bools.push_back(at);
      at = static_cast<uint32_t>(e.code.size() - 1);
    }
    floats.push_back(at);
  }
  e.code.push_back(constant(dice.real(), DType::f32));
  floats.push_back(static_cast<uint32_t>(e.code.size() - 1));
  auto any = [&] { return floats[dice.below(static_cast<uint32_t>(floats.size()))]; };
  const uint16_t binary[] = {TUTTI_X_ADD, TUTTI_X_SUB, TUTTI_X_MUL, TUTTI_X_DIV, TUTTI_X_MIN, TUTTI_X_MAX};
  const uint16_t compares[] = {TUTTI_X_LESS, TUTTI_X_LESS_EQUAL, TUTTI_X_EQUAL};
  for (uint32_t k = 0; k < length; ++k) {
    uint32_t kind = dice.below(10);
    auto at = static_cast<uint32_t>(e.code.size());
    if (kind < 6) {
      uint32_t p = any(), q = any();
      e.code.push_back(instr(binary[dice.below(6)], DType::f32, p, q));
      floats.push_back(at);
    } else if (kind == 6) {
      uint32_t p = any(), q = any();
      e.code.push_back(instr(compares[dice.below(3)], DType::boolean, p, q));
      bools.push_back(at);
    } else if (kind == 7 && !bools.empty()) {
      uint32_t c = bools[dice.below(static_cast<uint32_t>(bools.size()))], p = any(), q = any();
      e.code.push_back(instr(TUTTI_X_SELECT, DType::f32, c, p, q));
      floats.push_back(at);
    } else if (kind == 8) {
      const uint16_t unary[] = {TUTTI_X_NEG, TUTTI_X_ABS, TUTTI_X_SQRT};
      e.code.push_back(instr(unary[dice.below(3)], DType::f32, any()));
      floats.push_back(at);
    } else {  // there and back: a rounding
      const DType narrow[] = {DType::bf16, DType::f16, DType::i32, DType::u8};
      e.code.push_back(instr(TUTTI_X_CAST, narrow[dice.below(4)], any()));
      e.code.push_back(instr(TUTTI_X_CAST, DType::f32, at));
      floats.push_back(at + 1);
    }
  }
  for (uint32_t o = 0; o < outputs; ++o) {
    uint32_t from = o == 0 ? floats.back() : any();
    DType t = DType::f32;
    if (o == 1) {
      t = DType::bf16;
      e.code.push_back(instr(TUTTI_X_CAST, t, from));
      from = static_cast<uint32_t>(e.code.size() - 1);
    }
    if (o == 2 && !bools.empty()) {
      t = DType::boolean;
      from = bools.back();
    }
    e.code.push_back(instr(TUTTI_X_RESULT, t, from, o));
    e.out.push_back(t);
  }
  return e;
}

void fill_random(Array& x, Dice& dice) {
  for (int64_t i = 0; i < num_elements(x.shape); ++i) {
    double v = x.t == DType::boolean ? dice.below(2)
               : x.t == DType::u8    ? dice.below(256)
               : x.t == DType::i32   ? static_cast<double>(dice.below(2000)) - 1000
                                     : dice.real();
    store_element(x.t, x.data.data(), static_cast<size_t>(i), v);
  }
}

/// Runs the evaluator on one, two and three threads and compares each element with the scalar loop.
void check(const Expression& e, const Shape& shape, const std::vector<Array>& in, uint64_t seed) {
  std::vector<Operand> operands;
  std::vector<const void*> from;
  for (const Array& x : in) {
    operands.push_back({x.t, broadcast_strides(x.shape, shape)});
    from.push_back(x.data.data());
  }
  Eval eval(e.code, shape, operands, e.out);
  for (int threads : {1, 2, 3}) {
    std::vector<Array> out;
    std::vector<void*> to;
    for (DType t : e.out) out.emplace_back(t, shape);
    for (Array& y : out) to.push_back(y.data.data());
    std::vector<std::byte> scratch(eval.scratch_bytes(threads) + 64);
    eval.run(from.data(), to.data(), scratch.data(), threads);
    Shape dense = strides_of(shape);
    for (int64_t k = 0; k < num_elements(shape); ++k) {
      std::vector<double> r(e.code.size());
      for (size_t j = 0; j < e.code.size(); ++j) {
        const TuttiInstr& i = e.code[j];
        if (i.code == TUTTI_X_INPUT) {
          int64_t at = 0;
          for (size_t d = 0; d < shape.size(); ++d) at += k / dense[d] % shape[d] * operands[i.a].strides[d];
          r[j] = in[i.a].at(at);
        } else if (i.code == TUTTI_X_CONST) {
          r[j] = static_cast<float>(std::bit_cast<double>(uint64_t{i.b} << 32 | i.a));
        } else if (i.code == TUTTI_X_RESULT) {
          ASSERT_TRUE(same(out[i.b].at(k), r[i.a]))
              << "seed " << seed << ", element " << k << " of " << to_string(shape) << ", result " << i.b << ": "
              << out[i.b].at(k) << ", expected " << r[i.a] << ", " << threads << " threads";
        } else {
          r[j] = scalar(i, r[i.a], r[i.b], i.code == TUTTI_X_SELECT ? r[i.c] : 0);
        }
      }
    }
  }
}

TEST(Eval, random_expressions) {
  const std::vector<std::vector<Shape>> shapes = {{{7}, {7}, {1}},
                                                  {{}, {}, {}},
                                                  {{3, 5}, {5}, {3, 1}},
                                                  {{4, 1, 130}, {3, 1}, {130}},
                                                  {{1500}, {1500}, {}},
                                                  {{40, 1000}, {1000}, {40, 1}},
                                                  {{2, 3, 4, 5}, {3, 1, 1}, {4, 5}},
                                                  {{0, 3}, {3}, {}},
                                                  {{300, 300}, {300}, {1}},
                                                  {{1, 600}, {9, 1}, {1}},
                                                  {{17, 33, 10}, {33, 1}, {17, 1, 1}}};
  const DType types[] = {DType::f32, DType::f32, DType::f32, DType::bf16,
                         DType::f16, DType::i32, DType::u8,  DType::boolean};
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    Dice dice(seed);
    const auto& s = shapes[seed % shapes.size()];
    Shape shape;
    std::vector<Array> in;
    std::vector<DType> dtypes;
    for (const Shape& x : s) {
      shape = broadcast_shapes(shape, x);
      dtypes.push_back(types[dice.below(8)]);
      in.emplace_back(dtypes.back(), x);
      fill_random(in.back(), dice);
    }
    check(random_expression(dice, dtypes, 3 + dice.below(20), 1 + dice.below(3)), shape, in, seed);
    if (HasFatalFailure()) return;
  }
}

TEST(Eval, transposed_operands) {
  Dice dice(7);
  Array x(DType::f32, {70, 130}), y(DType::f32, {130, 70});
  fill_random(x, dice);
  std::vector<TuttiInstr> code = {instr(TUTTI_X_INPUT, DType::f32, 0), instr(TUTTI_X_NEG, DType::f32, 0),
                                  instr(TUTTI_X_RESULT, DType::f32, 1, 0)};
  Eval eval(code, {130, 70}, {{DType::f32, {1, 130}}}, {DType::f32});
  std::vector<std::byte> scratch(eval.scratch_bytes(2) + 64);
  const void* in[] = {x.data.data()};
  void* out[] = {y.data.data()};
  eval.run(in, out, scratch.data(), 2);
  for (int64_t i = 0; i < 130; ++i)
    for (int64_t j = 0; j < 70; ++j) ASSERT_EQ(y.at(i * 70 + j), -x.at(j * 130 + i));
}

/// p' = p - m', m' = 0.9 m + g: both computed where p and m lie; and an exchange of two arrays.
TEST(Eval, in_place) {
  for (int64_t n : {1, 5, 1000, 100003}) {
    Dice dice(3);
    Array p(DType::f32, {n}), g(DType::f32, {n}), m(DType::f32, {n});
    for (Array* x : {&p, &g, &m}) fill_random(*x, dice);
    Array p0 = p, m0 = m;
    std::vector<TuttiInstr> code = {instr(TUTTI_X_INPUT, DType::f32, 0),    instr(TUTTI_X_INPUT, DType::f32, 1),
                                    instr(TUTTI_X_INPUT, DType::f32, 2),    constant(0.9, DType::f32),
                                    instr(TUTTI_X_MUL, DType::f32, 3, 2),   instr(TUTTI_X_ADD, DType::f32, 4, 1),
                                    instr(TUTTI_X_SUB, DType::f32, 0, 5),   instr(TUTTI_X_RESULT, DType::f32, 6, 0),
                                    instr(TUTTI_X_RESULT, DType::f32, 5, 1)};
    std::vector<Operand> operands(3, {DType::f32, {1}});
    Eval eval(code, {n}, operands, {DType::f32, DType::f32}, {0, 2});
    std::vector<std::byte> scratch(eval.scratch_bytes(2) + 64);
    const void* in[] = {p.data.data(), g.data.data(), m.data.data()};
    void* out[] = {p.data.data(), m.data.data()};
    eval.run(in, out, scratch.data(), 2);
    for (int64_t i = 0; i < n; ++i) {
      float next = 0.9f * static_cast<float>(m0.at(i)) + static_cast<float>(g.at(i));
      ASSERT_EQ(m.at(i), next);
      ASSERT_EQ(p.at(i), static_cast<float>(p0.at(i)) - next);
    }
    p = p0;
    m = m0;
    std::vector<TuttiInstr> swap = {instr(TUTTI_X_INPUT, DType::f32, 0), instr(TUTTI_X_INPUT, DType::f32, 1),
                                    instr(TUTTI_X_RESULT, DType::f32, 1, 0), instr(TUTTI_X_RESULT, DType::f32, 0, 1)};
    Eval exchange(swap, {n}, {{DType::f32, {1}}, {DType::f32, {1}}}, {DType::f32, DType::f32}, {0, 1});
    scratch.resize(exchange.scratch_bytes(2) + 64);
    const void* from[] = {p.data.data(), m.data.data()};
    void* to[] = {p.data.data(), m.data.data()};
    exchange.run(from, to, scratch.data(), 2);
    EXPECT_TRUE(p.data == m0.data && m.data == p0.data) << n;
  }
}

TEST(Eval, small_integers_wrap) {
  Array a(DType::u8, {4}), b(DType::u8, {4}), y(DType::u8, {4});
  const uint8_t left[] = {250, 3, 16, 0}, right[] = {10, 5, 16, 1}, sum[] = {4, 8, 32, 1},
                difference[] = {240, 254, 0, 255}, product[] = {196, 15, 0, 0};
  std::memcpy(a.data.data(), left, 4);
  std::memcpy(b.data.data(), right, 4);
  auto run = [&](uint16_t code, const uint8_t* want) {
    std::vector<TuttiInstr> e = {instr(TUTTI_X_INPUT, DType::u8, 0), instr(TUTTI_X_INPUT, DType::u8, 1),
                                 instr(code, DType::u8, 0, 1), instr(TUTTI_X_RESULT, DType::u8, 2, 0)};
    Eval eval(e, {4}, {{DType::u8, {1}}, {DType::u8, {1}}}, {DType::u8});
    std::vector<std::byte> scratch(eval.scratch_bytes(1) + 64);
    const void* in[] = {a.data.data(), b.data.data()};
    void* out[] = {y.data.data()};
    eval.run(in, out, scratch.data(), 1);
    for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(y.at(i), want[i]) << code;
  };
  run(TUTTI_X_ADD, sum);
  run(TUTTI_X_SUB, difference);
  run(TUTTI_X_MUL, product);
}

TEST(Eval, declines_what_has_no_lanes) {
  std::vector<TuttiInstr> f64 = {instr(TUTTI_X_INPUT, DType::f64, 0)},
                          sine = {instr(TUTTI_X_INPUT, DType::i32, 0), instr(TUTTI_X_SIN, DType::i32, 0)};
  EXPECT_EQ(Eval::declines(f64), "dtype f64");
  EXPECT_NE(Eval::declines(sine), "");
  EXPECT_THROW(Eval(f64, {3}, {{DType::f64, {1}}}, {}), Error);
}

}  // namespace
