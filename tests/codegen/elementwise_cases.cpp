#include <cmath>

#include "tests/codegen/cases.h"

namespace tutti::codegen::cases {
namespace {

using Fn = std::function<double(double, double, double)>;

/// One instruction over up to three inputs, broadcast from `shapes` to `dims`.
Case one(const std::string& name, uint16_t op, DType from, DType to, Fn f, const Shape& dims,
         const std::vector<Shape>& shapes, double low, double high, double relative, std::vector<double> special = {}) {
  Case c{name};
  c.relative = relative;
  c.absolute = relative > 0 ? 1e-45 : 0;
  Instructions code;
  std::vector<Operand> operands;
  std::vector<Shape> strides;
  std::vector<uint32_t> at;
  for (size_t i = 0; i < shapes.size(); ++i) {
    DType t = op == TUTTI_X_SELECT && i == 0 ? DType::boolean : from;
    strides.push_back(broadcast_strides(shapes[i], dims));
    operands.push_back({t, strides.back()});
    at.push_back(code.in(t, static_cast<uint32_t>(i)));
    c.inputs.push_back(random(t, num_elements(shapes[i]), t == DType::boolean ? 0 : low, t == DType::boolean ? 2 : high,
                              7 + static_cast<uint32_t>(i)));
    if (i == 0 || shapes.size() == 2)
      for (size_t k = 0; k < special.size() * special.size() && k < c.inputs.back().at.size(); ++k)
        c.inputs.back().at[k] = round_to(t, special[i == 0 ? k % special.size() : k / special.size()]);
  }
  at.resize(3);
  code.out(to, code.add(op, to, at[0], at[1], at[2]));
  Shape dense = strides_of(dims);
  Array y{to, std::vector<double>(static_cast<size_t>(num_elements(dims)))};
  for (size_t e = 0; e < y.at.size(); ++e) {
    double x[3] = {};
    for (size_t i = 0; i < shapes.size(); ++i) {
      int64_t rest = static_cast<int64_t>(e), k = 0;
      for (size_t d = 0; d < dims.size(); ++d) {
        k += rest / dense[d] * strides[i][d];
        rest %= dense[d];
      }
      x[i] = c.inputs[i].at[static_cast<size_t>(k)];
    }
    y.at[e] = round_to(to, f(x[0], x[1], x[2]));
  }
  c.expected = {y};
  c.make = [list = code.list, dims, operands, to](const Target& t) {
    return elementwise(t, list, dims, operands, std::span(&to, 1), false);
  };
  return c;
}

/// x * s and x + s of tensors of several shapes with one scalar s, in one launch.
Case batch(const std::vector<Shape>& shapes, DType t) {
  Case c{"batch of " + std::to_string(shapes.size()) + " " + std::string(name(t))};
  c.relative = t == DType::f32 ? 1e-7 : 0;
  Instructions code;
  uint32_t x = code.in(t, 0), s = code.in(t, 1);
  code.out(t, code.add(TUTTI_X_MUL, t, x, s), 0);
  code.out(t, code.add(TUTTI_X_ADD, t, x, s), 1);
  std::vector<BatchItem> items;
  c.inputs.push_back(random(t, 1, 1, 2, 3));
  for (const Shape& shape : shapes) {
    auto n = static_cast<int>(items.size());
    int to = static_cast<int>(shapes.size()) + 1 + 2 * n;
    items.push_back({shape, {{t, strides_of(shape)}, {t, Shape(shape.size())}}, {n + 1, 0}, {to, to + 1}});
    c.inputs.push_back(random(t, num_elements(shape), -3, 3, static_cast<uint32_t>(n)));
    Array product{t, {}}, sum{t, {}};
    for (double v : c.inputs.back().at) {
      product.at.push_back(round_to(t, v * c.inputs[0].at[0]));
      sum.at.push_back(round_to(t, v + c.inputs[0].at[0]));
    }
    c.expected.push_back(product);
    c.expected.push_back(sum);
  }
  c.make = [list = code.list, items, t](const Target& target) {
    return elementwise_batch(target, list, items, std::vector<DType>{t, t}, false);
  };
  return c;
}

/// x * s of a tensor, and beside it -z of i32 in an item with an expression of its own, in one launch.
Case unlike(const Shape& shape, int64_t size) {
  Case c{"batch of unlike expressions"};
  c.relative = 1e-7;
  const DType f = DType::f32, i = DType::i32;
  Instructions product, negated;
  product.out(f, product.add(TUTTI_X_MUL, f, product.in(f, 0), product.in(f, 1)));
  negated.out(i, negated.add(TUTTI_X_NEG, i, negated.in(i, 0)));
  std::vector<BatchItem> items = {{shape, {{f, strides_of(shape)}, {f, Shape(shape.size())}}, {0, 1}, {3}},
                                  {{size}, {{i, {1}}}, {2}, {4}, negated.list, {i}}};
  c.inputs = {random(f, num_elements(shape), -3, 3, 1), random(f, 1, 1, 2, 2), random(i, size, -100, 100, 3)};
  c.expected = {{f, {}}, {i, {}}};
  for (double v : c.inputs[0].at) c.expected[0].at.push_back(round_to(f, v * c.inputs[1].at[0]));
  for (double v : c.inputs[2].at) c.expected[1].at.push_back(-v);
  c.make = [list = product.list, items, f](const Target& target) {
    return elementwise_batch(target, list, items, std::vector<DType>{f}, false);
  };
  return c;
}

/// A step of Adam over tensors of several sizes in one launch; the learning rate is a tensor, as on a device.
Case adam(const std::vector<int64_t>& sizes, DType gradient) {
  constexpr double b1 = 0.9, b2 = 0.999, epsilon = 1e-8;
  const DType f = DType::f32;
  Case c{"Adam, gradients in " + std::string(name(gradient))};
  c.relative = 1e-5;
  c.absolute = 1e-7;
  Instructions code;
  uint32_t p = code.in(f, 0), m = code.in(f, 1), v = code.in(f, 2), rate = code.in(f, 4), g = code.in(gradient, 3);
  auto two = [&](uint16_t op, uint32_t a, uint32_t b) { return code.add(op, f, a, b); };
  auto scaled = [&](uint32_t a, double by) { return two(TUTTI_X_MUL, a, code.constant(f, by)); };
  if (gradient != f) g = code.add(TUTTI_X_CAST, f, g);
  uint32_t m1 = two(TUTTI_X_ADD, scaled(m, b1), scaled(g, 1 - b1));
  uint32_t v1 = two(TUTTI_X_ADD, scaled(v, b2), scaled(two(TUTTI_X_MUL, g, g), 1 - b2));
  uint32_t root = two(TUTTI_X_ADD, code.add(TUTTI_X_SQRT, f, v1), code.constant(f, epsilon));
  code.out(f, two(TUTTI_X_SUB, p, two(TUTTI_X_DIV, two(TUTTI_X_MUL, rate, m1), root)), 0);
  code.out(f, m1, 1);
  code.out(f, v1, 2);
  std::vector<BatchItem> items;
  c.inputs.push_back({f, {0.01}});
  int inputs = 1 + 4 * static_cast<int>(sizes.size());
  for (int64_t n : sizes) {
    int k = static_cast<int>(items.size()), from = 1 + 4 * k, to = inputs + 3 * k;
    Operand line{f, {1}};
    items.push_back({{n},
                     {line, line, line, {gradient, {1}}, {f, {0}}},
                     {from, from + 1, from + 2, from + 3, 0},
                     {to, to + 1, to + 2}});
    auto seed = static_cast<uint32_t>(4 * k);
    Array x[] = {random(f, n, -1, 1, seed), random(f, n, -1, 1, seed + 1), random(f, n, 0.01, 1, seed + 2),
                 random(gradient, n, -1, 1, seed + 3)};
    Array y[] = {{f, {}}, {f, {}}, {f, {}}};
    for (size_t i = 0; i < x[0].at.size(); ++i) {
      double d = x[3].at[i], mean = b1 * x[1].at[i] + (1 - b1) * d, square = b2 * x[2].at[i] + (1 - b2) * d * d;
      y[0].at.push_back(x[0].at[i] - 0.01 * mean / (std::sqrt(square) + epsilon));
      y[1].at.push_back(mean);
      y[2].at.push_back(square);
    }
    c.inputs.insert(c.inputs.end(), std::begin(x), std::end(x));
    c.expected.insert(c.expected.end(), std::begin(y), std::end(y));
  }
  c.make = [list = code.list, items, f](const Target& target) {
    return elementwise_batch(target, list, items, std::vector<DType>{f, f, f}, false);
  };
  return c;
}

double nan_min(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b); }
double nan_max(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b); }

}  // namespace

std::vector<Case> elementwise_cases() {
  std::vector<Case> all;
  const double inf = HUGE_VAL;
  const std::vector<double> edges = {0.0,   -0.0, 1.0,   -1.0, inf, -inf, NAN,
                                     1e-42, 3e38, -3e38, 0.5,  2.5, 1e10, 16777216};
  const DType f = DType::f32, b = DType::boolean, i = DType::i32, u = DType::u32;
  auto binary = [&](const char* name, uint16_t op, DType from, DType to, auto g, double low, double high,
                    double relative, std::vector<double> special) {
    Fn fn = [g](double x, double y, double) { return static_cast<double>(g(x, y)); };
    for (int64_t n : {0, 1, 1021})
      all.push_back(one(std::string(name) + " " + std::to_string(n), op, from, to, fn, {n}, {{n}, {n}}, low, high,
                        relative, n > 1 ? special : std::vector<double>{}));
  };
  auto unary = [&](const char* name, uint16_t op, DType from, DType to, auto g, double low, double high,
                   double relative, std::vector<double> special) {
    Fn fn = [g](double x, double, double) { return static_cast<double>(g(x)); };
    for (int64_t n : {1, 1020, 1021})
      all.push_back(one(std::string(name) + " " + std::to_string(n), op, from, to, fn, {n}, {{n}}, low, high, relative,
                        n > 1 ? special : std::vector<double>{}));
  };
  binary(
      "add", TUTTI_X_ADD, f, f, [](double x, double y) { return x + y; }, -10, 10, 1e-7, edges);
  binary(
      "sub", TUTTI_X_SUB, f, f, [](double x, double y) { return x - y; }, -10, 10, 1e-7, edges);
  binary(
      "mul", TUTTI_X_MUL, f, f, [](double x, double y) { return x * y; }, -10, 10, 1e-7, edges);
  binary("div", TUTTI_X_DIV, f, f, [](double x, double y) { return x / y; }, -10, 10, 3e-7,
         {1.0, -1.0, 0.0, inf, NAN, 3.0});
  binary("min", TUTTI_X_MIN, f, f, nan_min, -10, 10, 0, edges);
  binary("max", TUTTI_X_MAX, f, f, nan_max, -10, 10, 0, edges);
  binary("pow", TUTTI_X_POW, f, f, [](double x, double y) { return std::pow(x, y); }, 0.01, 12, 2e-6,
         {0.0, 1.0, -1.0, 2.0, inf, -inf, NAN, -2.0, 3.0, 0.5, -3.0});
  binary(
      "fmod", TUTTI_X_FMOD, f, f, [](double x, double y) { return std::fmod(x, y); }, -1e6, 1e6, 0, edges);
  binary(
      "less", TUTTI_X_LESS, f, b, [](double x, double y) { return x < y; }, -2, 2, 0, edges);
  binary(
      "less_equal", TUTTI_X_LESS_EQUAL, f, b, [](double x, double y) { return x <= y; }, -2, 2, 0, edges);
  binary(
      "equal", TUTTI_X_EQUAL, f, b, [](double x, double y) { return x == y; }, -2, 2, 0, edges);
  unary(
      "neg", TUTTI_X_NEG, f, f, [](double x) { return -x; }, -10, 10, 0, edges);
  unary(
      "abs", TUTTI_X_ABS, f, f, [](double x) { return std::fabs(x); }, -10, 10, 0, edges);
  unary("sqrt", TUTTI_X_SQRT, f, f, [](double x) { return std::sqrt(x); }, 0, 10, 3e-7, {0.0, 1.0, inf, NAN, -1.0});
  unary("rsqrt", TUTTI_X_RSQRT, f, f, [](double x) { return 1 / std::sqrt(x); }, 0.01, 10, 4e-7,
        {0.0, 1.0, inf, NAN, -1.0});
  unary("exp", TUTTI_X_EXP, f, f, [](double x) { return std::exp(x); }, -80, 80, 4e-7,
        {0.0, inf, -inf, NAN, 89.0, 88.7, -87.0, 1e-42});
  unary("expm1", TUTTI_X_EXPM1, f, f, [](double x) { return std::expm1(x); }, -20, 80, 4e-7,
        {0.0, inf, -inf, NAN, 89.0, 88.7, 1e-6, -1e-6});
  unary("log", TUTTI_X_LOG, f, f, [](double x) { return std::log(x); }, 1e-6, 90, 4e-7,
        {0.0, inf, -1.0, NAN, 1.0, 1e-40, 3e38});
  unary("log1p", TUTTI_X_LOG1P, f, f, [](double x) { return std::log1p(x); }, -0.99, 90, 4e-7,
        {0.0, inf, -1.0, -2.0, NAN, 1e-6, 3e38});
  unary("tanh", TUTTI_X_TANH, f, f, [](double x) { return std::tanh(x); }, -10, 10, 4e-7,
        {0.0, inf, -inf, NAN, 1e-5, 0.625});
  unary("erf", TUTTI_X_ERF, f, f, [](double x) { return std::erf(x); }, -5, 5, 4e-7,
        {0.0, inf, -inf, NAN, 1e-5, 0.9277});
  unary("sin", TUTTI_X_SIN, f, f, [](double x) { return std::sin(x); }, -100, 100, 1e-6, {0.0, inf, NAN, 1e-5});
  unary("cos", TUTTI_X_COS, f, f, [](double x) { return std::cos(x); }, -1, 1, 1e-6, {0.0, inf, NAN, 1e-5});
  unary(
      "floor", TUTTI_X_FLOOR, f, f, [](double x) { return std::floor(x); }, -10, 10, 0, edges);
  auto wrap32 = [](double x) {
    return static_cast<double>(static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(x))));
  };
  auto wrap = [](double x) { return static_cast<double>(static_cast<uint32_t>(static_cast<int64_t>(x))); };
  const std::vector<double> whole = {0, 1, -1, 2147483647, -2147483648.0, 7, -7};
  const std::vector<double> natural = {0, 1, 4294967295.0, 2147483648.0, 7};
  binary(
      "add i32", TUTTI_X_ADD, i, i, [=](double x, double y) { return wrap32(x + y); }, -2e9, 2e9, 0, whole);
  binary(
      "sub i32", TUTTI_X_SUB, i, i, [=](double x, double y) { return wrap32(x - y); }, -2e9, 2e9, 0, whole);
  binary(
      "mul i32", TUTTI_X_MUL, i, i,
      [](double x, double y) {
        return static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(x)) *
                                    static_cast<uint32_t>(static_cast<int64_t>(y)));
      },
      -2e9, 2e9, 0, whole);
  binary(
      "div i32", TUTTI_X_DIV, i, i, [=](double x, double y) { return y == 0 ? 0 : wrap32(std::trunc(x / y)); }, -2e9,
      2e9, 0, whole);
  binary("min i32", TUTTI_X_MIN, i, i, nan_min, -2e9, 2e9, 0, whole);
  binary(
      "mul u32", TUTTI_X_MUL, u, u,
      [](double x, double y) { return static_cast<uint32_t>(x) * static_cast<uint32_t>(y); }, 0, 4e9, 0, natural);
  binary(
      "sub u32", TUTTI_X_SUB, u, u, [=](double x, double y) { return wrap(x - y); }, 0, 4e9, 0, natural);
  binary(
      "xor u32", TUTTI_X_XOR, u, u,
      [](double x, double y) { return static_cast<uint32_t>(x) ^ static_cast<uint32_t>(y); }, 0, 4e9, 0, natural);
  binary(
      "and u32", TUTTI_X_AND, u, u,
      [](double x, double y) { return static_cast<uint32_t>(x) & static_cast<uint32_t>(y); }, 0, 4e9, 0, natural);
  binary("shr u32", TUTTI_X_SHR, u, u,
         [](double x, double y) { return static_cast<uint32_t>(x) >> static_cast<uint32_t>(y); }, 0, 31.9, 0, {});
  binary("shl i32", TUTTI_X_SHL, i, i, [=](double x, double y) { return wrap32(std::ldexp(x, static_cast<int>(y))); },
         0, 12, 0, {});
  binary("shr i32", TUTTI_X_SHR, i, i,
         [](double x, double y) { return static_cast<int32_t>(x) >> (static_cast<int32_t>(y) & 31); }, 0, 31, 0, {});
  binary("add u8", TUTTI_X_ADD, DType::u8, DType::u8,
         [](double x, double y) { return static_cast<uint8_t>(static_cast<int>(x + y)); }, 0, 255.9, 0, {});
  binary("and bool", TUTTI_X_AND, b, b, [](double x, double y) { return x != 0 && y != 0; }, 0, 2, 0, {});
  binary("or bool", TUTTI_X_OR, b, b, [](double x, double y) { return x != 0 || y != 0; }, 0, 2, 0, {});
  unary("not bool", TUTTI_X_NOT, b, b, [](double x) { return x == 0; }, 0, 2, 0, {});
  auto same = [](double x) { return x; };
  const std::vector<double> casts = {0.0, -0.0,  0.99, -0.99, 1.5,          -1.5,  inf,   -inf,  NAN,  3e9,  -3e9,
                                     5e9, 255.5, 256,  300,   2147483520.0, 65504, 65519, 65520, 6e-8, 1e-5, 3.4e38};
  for (DType to : {i, u, DType::u8, b, DType::f16, DType::bf16, f}) {
    unary(("cast f32 to " + std::string(name(to))).c_str(), TUTTI_X_CAST, f, to,
          [to](double x) { return round_to(to, x); }, -300, 300, 0, casts);
    unary(("cast i32 to " + std::string(name(to))).c_str(), TUTTI_X_CAST, i, to, same, -70000, 70000, 0,
          {0, 1, -1, 2147483647, -2147483648.0, 16777217});
    unary(("cast u32 to " + std::string(name(to))).c_str(), TUTTI_X_CAST, u, to, same, 0, 70000, 0, natural);
    unary(("cast u8 to " + std::string(name(to))).c_str(), TUTTI_X_CAST, DType::u8, to, same, 0, 255.9, 0, {});
    unary(("cast bool to " + std::string(name(to))).c_str(), TUTTI_X_CAST, b, to, same, 0, 2, 0, {});
    unary(("cast f16 to " + std::string(name(to))).c_str(), TUTTI_X_CAST, DType::f16, to,
          [to](double x) { return round_to(to, x); }, -300, 300, 0, casts);
    unary(("cast bf16 to " + std::string(name(to))).c_str(), TUTTI_X_CAST, DType::bf16, to,
          [to](double x) { return round_to(to, x); }, -300, 300, 0, casts);
  }
  binary("mul f16", TUTTI_X_MUL, DType::f16, DType::f16, [](double x, double y) { return x * y; }, -10, 10, 0, {});
  binary("mul bf16", TUTTI_X_MUL, DType::bf16, DType::bf16, [](double x, double y) { return x * y; }, -10, 10, 0, {});
  // Broadcasting.
  Fn plus = [](double x, double y, double) { return x + y; };
  struct Shapes {
    Shape dims;
    std::vector<Shape> in;
  };
  for (const Shapes& s : std::vector<Shapes>{{{}, {{}, {}}},
                                             {{5, 7}, {{5, 7}, {7}}},
                                             {{5, 8}, {{5, 1}, {8}}},
                                             {{128, 512}, {{128, 512}, {512}}},
                                             {{3, 4, 5}, {{4, 1}, {3, 1, 5}}},
                                             {{2, 3, 4, 6}, {{1, 3, 1, 1}, {2, 3, 4, 6}}},
                                             {{4, 0}, {{4, 0}, {1}}},
                                             {{33, 130}, {{33, 1}, {33, 130}}},
                                             {{64, 32, 14, 14}, {{64, 32, 14, 14}, {32, 1, 1}}},
                                             {{70000}, {{70000}, {1}}},
                                             {{2, 40001}, {{2, 1}, {2, 40001}}},
                                             {{300, 1, 260}, {{300, 2, 1}, {2, 260}}}}) {
    Shape dims = s.dims;
    if (dims == Shape{300, 1, 260}) dims = {300, 2, 260};
    all.push_back(one("broadcast add " + to_string(dims), TUTTI_X_ADD, f, f, plus, dims, s.in, -5, 5, 1e-7));
    all.push_back(
        one("broadcast add u8 " + to_string(dims), TUTTI_X_ADD, DType::u8, DType::u8, plus, dims, s.in, 0, 100, 0));
    all.push_back(one("broadcast add bf16 " + to_string(dims), TUTTI_X_ADD, DType::bf16, DType::bf16, plus, dims, s.in,
                      0, 100, 0));
  }
  all.push_back(one(
      "select", TUTTI_X_SELECT, f, f, [](double x, double y, double z) { return x != 0 ? y : z; }, {9, 12},
      {{9, 12}, {12}, {9, 1}}, -5, 5, 0));
  all.push_back(one(
      "select u8", TUTTI_X_SELECT, DType::u8, DType::u8, [](double x, double y, double z) { return x != 0 ? y : z; },
      {9, 13}, {{9, 13}, {13}, {9, 1}}, 0, 255, 0));
  // Long lines whose last elements fill no load, and lines of whole loads that begin at each row.
  for (int64_t n : {2048, 2051})
    for (DType t : {f, b, DType::u8, DType::f16, DType::bf16})
      for (DType to : {f, DType::u8, DType::bf16})
        if (n % 4 != 0 || t == DType::f16 || t == DType::u8)
          all.push_back(one(
              "cast " + std::string(name(t)) + " to " + std::string(name(to)) + " " + std::to_string(n), TUTTI_X_CAST,
              t, to, [](double x, double, double) { return x; }, {n}, {{n}}, 0, t == b ? 2 : 200, 0));
  for (DType t : {f, DType::f16, DType::bf16})
    for (const Shape& dims : std::vector<Shape>{{7, 516}, {9, 40}, {3, 20}, {2051, 1}, {3, 7}})
      all.push_back(one(
          "broadcast mul " + std::string(name(t)) + " " + to_string(dims), TUTTI_X_MUL, t, t,
          [](double x, double y, double) { return x * y; }, dims, {dims, {dims[1]}}, -3, 3, t == f ? 1e-7 : 0));
  all.push_back(adam({4096, 10, 2051, 100}, f));
  all.push_back(adam({2055, 24}, DType::bf16));
  for (DType t : {DType::f32, DType::i32, DType::bf16})
    all.push_back(batch({{7}, {64, 33}, {3, 1, 5}, {0, 4}, {10, 512}, {1}}, t));
  all.push_back(unlike({64, 33}, 1030));
  all.push_back(unlike({5}, 1));
  return all;
}

}  // namespace tutti::codegen::cases
