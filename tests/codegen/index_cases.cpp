#include <algorithm>
#include <cmath>

#include "core/base/philox.h"
#include "tests/codegen/cases.h"

namespace tutti::codegen::cases {
namespace {

using At = std::vector<int64_t>;

/// Calls visit(element, coordinates) for each element of `dims`.
template <class F>
void each(const Shape& dims, F visit) {
  At at(dims.size());
  for (int64_t e = 0; e < num_elements(dims); ++e) {
    visit(static_cast<size_t>(e), at);
    for (size_t d = dims.size(); d-- > 0;) {
      if (++at[d] < dims[d]) break;
      at[d] = 0;
    }
  }
}

/// y[i] = x[source(i)], or `value` where source is negative.
template <class F>
Case moved(const std::string& what, const TensorType& x, const Shape& y, const Copy& copy, F source, double value = 0) {
  Case c{what + " " + to_string(x) + " " + to_string(y)};
  c.inputs = {random(x.dtype, num_elements(x.shape), x.dtype == DType::boolean ? 0 : 1,
                     x.dtype == DType::boolean ? 2 : 200, 5)};
  Array out{x.dtype, std::vector<double>(static_cast<size_t>(num_elements(y)))};
  each(y, [&](size_t e, const At& at) {
    int64_t k = source(at);
    out.at[e] = k < 0 ? round_to(x.dtype, value) : c.inputs[0].at[static_cast<size_t>(k)];
  });
  c.expected = {out};
  c.make = [copy](const Target& t) { return codegen::copy(t, copy); };
  return c;
}

int64_t dot(const At& at, const Shape& strides) {
  int64_t k = 0;
  for (size_t d = 0; d < at.size(); ++d) k += at[d] * strides[d];
  return k;
}

Case transposed(DType t, const Shape& shape, const std::vector<int64_t>& perm) {
  TensorType x{t, shape};
  Shape strides = strides_of(shape), y, walked;
  for (int64_t p : perm) {
    y.push_back(shape[static_cast<size_t>(p)]);
    walked.push_back(strides[static_cast<size_t>(p)]);
  }
  return moved("transpose", x, y, transpose_copy(x, perm), [=](const At& at) { return dot(at, walked); });
}

Case padded(DType t, const Shape& shape, const At& low, const At& high, const At& interior, double value) {
  TensorType x{t, shape};
  Shape y, strides = strides_of(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t step = interior.empty() ? 1 : interior[d] + 1;
    y.push_back(low[d] + high[d] + (shape[d] ? (shape[d] - 1) * step + 1 : 0));
  }
  return moved(
      "pad", x, y, pad_copy(x, y, low, interior, value),
      [=](const At& at) {
        int64_t k = 0;
        for (size_t d = 0; d < at.size(); ++d) {
          int64_t step = interior.empty() ? 1 : interior[d] + 1, p = at[d] - low[d];
          if (p < 0 || p % step || p / step >= shape[d]) return int64_t{-1};
          k += p / step * strides[d];
        }
        return k;
      },
      value);
}

Case sliced(DType t, const Shape& shape, const Shape& y, const At& starts, const At& steps) {
  TensorType x{t, shape};
  Shape strides = strides_of(shape);
  return moved("slice", x, y, slice_copy(x, y, starts, steps), [=](const At& at) {
    int64_t k = 0;
    for (size_t d = 0; d < at.size(); ++d) k += (starts[d] + at[d] * (steps.empty() ? 1 : steps[d])) * strides[d];
    return k;
  });
}

Case windowed(DType t, int64_t planes, const WindowAxis& h, const WindowAxis& w, double value) {
  TensorType x{t, {planes, h.size, w.size}};
  return moved(
      "window", x, {planes, h.kernel, w.kernel, h.count, w.count}, window_copy(t, planes, h, w, value),
      [=](const At& at) {
        int64_t y = at[3] * h.stride + at[1] * h.dilation - h.padding,
                z = at[4] * w.stride + at[2] * w.dilation - w.padding;
        return y < 0 || y >= h.size || z < 0 || z >= w.size ? int64_t{-1} : (at[0] * h.size + y) * w.size + z;
      },
      value);
}

Case folded(DType t, int64_t planes, const WindowAxis& h, const WindowAxis& w) {
  Shape from = {planes, h.kernel, w.kernel, h.count, w.count};
  Case c{"fold " + to_string(from)};
  c.inputs = {random(t, num_elements(from), -4, 4, 11)};
  Array y{t, std::vector<double>(static_cast<size_t>(planes * h.size * w.size))};
  each(from, [&](size_t e, const At& at) {
    int64_t a = at[3] * h.stride + at[1] * h.dilation - h.padding,
            b = at[4] * w.stride + at[2] * w.dilation - w.padding;
    if (a >= 0 && a < h.size && b >= 0 && b < w.size)
      y.at[static_cast<size_t>((at[0] * h.size + a) * w.size + b)] += c.inputs[0].at[e];
  });
  c.expected = {y};
  c.relative = t == DType::f32 ? 1e-6 : 1e-3;
  c.absolute = 1e-5;
  c.make = [=](const Target& target) { return fold_windows(target, t, planes, h, w); };
  return c;
}

Case joined(DType t, const std::vector<Shape>& shapes, int64_t axis) {
  Case c{"concat"};
  std::vector<TensorType> parts;
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < shapes[0].size(); ++d)
    (static_cast<int64_t>(d) < axis ? outer : inner) *= static_cast<int64_t>(d) == axis ? 1 : shapes[0][d];
  for (size_t i = 0; i < shapes.size(); ++i) {
    parts.push_back({t, shapes[i]});
    c.name += " " + to_string(shapes[i]);
    c.inputs.push_back(random(t, num_elements(shapes[i]), 1, 200, static_cast<uint32_t>(i)));
  }
  Array y{t, {}};
  for (int64_t o = 0; o < outer; ++o)
    for (size_t i = 0; i < shapes.size(); ++i) {
      int64_t n = shapes[i][static_cast<size_t>(axis)] * inner;
      y.at.insert(y.at.end(), c.inputs[i].at.begin() + o * n, c.inputs[i].at.begin() + (o + 1) * n);
    }
  c.expected = {y};
  c.make = [parts, axis](const Target& target) { return concat(target, parts, axis); };
  return c;
}

Case gathered(DType t, int64_t outer, int64_t size, int64_t inner, int64_t count) {
  Case c{"gather " + to_string(Shape{outer, size, inner, count})};
  c.inputs = {random(t, outer * size * inner, 0, 200, 3),
              random(DType::i32, count, -2, static_cast<double>(size) + 2, 4)};
  Array y{t, {}};
  for (int64_t o = 0; o < outer; ++o)
    for (double i : c.inputs[1].at) {
      auto row = static_cast<int64_t>(std::clamp(i, 0.0, static_cast<double>(size) - 1));
      for (int64_t k = 0; k < inner; ++k)
        y.at.push_back(c.inputs[0].at[static_cast<size_t>((o * size + row) * inner + k)]);
    }
  c.expected = {y};
  c.make = [=](const Target& target) { return gather(target, t, outer, size, inner, count); };
  return c;
}

Case scattered(DType t, int64_t outer, int64_t size, int64_t inner, int64_t count, bool along = false) {
  Case c{(along ? "add_along_axis " : "scatter_add ") + to_string(Shape{outer, size, inner, count})};
  c.inputs = {random(DType::i32, along ? outer * count * inner : count, -2, static_cast<double>(size) + 2, 4),
              random(t, outer * count * inner, -4, 4, 3)};
  Array y{t, std::vector<double>(static_cast<size_t>(outer * size * inner))};
  size_t from = 0;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < count; ++i)
      for (int64_t k = 0; k < inner; ++k, ++from) {
        double index = c.inputs[0].at[along ? from : static_cast<size_t>(i)];
        auto row = static_cast<int64_t>(std::clamp(index, 0.0, static_cast<double>(size) - 1));
        y.at[static_cast<size_t>((o * size + row) * inner + k)] += c.inputs[1].at[from];
      }
  c.expected = {y};
  c.relative = t == DType::f32 ? 1e-5 : 1e-2;
  c.absolute = 1e-4;
  c.make = [=](const Target& target) { return scatter_add(target, t, outer, size, inner, count, along); };
  return c;
}

Case bits(int64_t n, uint64_t seed, int32_t step, uint32_t stream) {
  Case c{"random_bits " + std::to_string(n)};
  c.inputs = {{DType::u32, {static_cast<double>(seed & 0xffffffff), static_cast<double>(seed >> 32)}},
              {DType::i32, {static_cast<double>(step)}}};
  Array y{DType::u32, {}};
  for (int64_t e = 0; e < n; ++e)
    y.at.push_back(random_block(seed, static_cast<uint32_t>(step), stream,
                                static_cast<uint64_t>(e / 4))[static_cast<size_t>(e % 4)]);
  c.expected = {y};
  c.make = [=](const Target& target) { return random_bits(target, n, stream); };
  return c;
}

}  // namespace

std::vector<Case> index_cases() {
  std::vector<Case> all;
  for (DType t : {DType::f32, DType::u8, DType::boolean, DType::bf16, DType::i64}) {
    for (auto& [shape, perm] : std::vector<std::pair<Shape, At>>{{{3, 5}, {1, 0}},
                                                                 {{}, {}},
                                                                 {{1}, {0}},
                                                                 {{0, 3}, {1, 0}},
                                                                 {{129, 67}, {1, 0}},
                                                                 {{2, 3, 4}, {2, 0, 1}},
                                                                 {{2, 8, 1, 4}, {0, 3, 1, 2}},
                                                                 {{7, 40, 36}, {0, 2, 1}}})
      all.push_back(transposed(t, shape, perm));
    all.push_back(sliced(t, {5, 7}, {3, 5}, {1, 2}, {}));
    all.push_back(sliced(t, {9, 70}, {2, 23}, {1, 0}, {5, 3}));
    all.push_back(sliced(t, {4, 64, 64}, {4, 32, 64}, {0, 32, 0}, {}));
    all.push_back(padded(t, {2, 3}, {1, 0}, {2, 1}, {}, 0));
    all.push_back(padded(t, {}, {}, {}, {}, 0));
    all.push_back(padded(t, {0, 2}, {1, 0}, {2, 0}, {3, 1}, 0));
    all.push_back(padded(t, {65, 40}, {3, 1}, {0, 2}, {0, 1}, 0));
    all.push_back(padded(t, {3, 2, 5, 6}, {0, 0, 1, 1}, {0, 0, 1, 1}, {}, 0));
    all.push_back(joined(t, {{2, 3}, {2, 1}, {2, 4}}, 1));
    all.push_back(joined(t, {{5}, {0}, {1}}, 0));
    all.push_back(joined(t, {{3, 4, 50}, {3, 2, 50}}, 1));
    all.push_back(joined(t, {{700, 16}, {700, 8}, {700, 33}}, 1));
    all.push_back(windowed(t, 6, axis(5, 3, 1, 0, 1), axis(4, 2, 1, 0, 1), 0));
    all.push_back(windowed(t, 2, axis(7, 3, 2, 1, 1), axis(6, 3, 1, 2, 2), 0));
    all.push_back(windowed(t, 0, axis(7, 3, 2, 1, 1), axis(6, 3, 1, 2, 2), 0));
    all.push_back(gathered(t, 1, 5, 3, 4));
    all.push_back(gathered(t, 2, 5, 3, 6));
    all.push_back(gathered(t, 3, 4, 1, 1));
    all.push_back(gathered(t, 1, 4, 2, 0));
    all.push_back(gathered(t, 1, 70, 65, 129));
    all.push_back(gathered(t, 2, 7, 16, 9));
  }
  for (DType t : {DType::f32, DType::u8, DType::i32, DType::f16, DType::boolean, DType::u32}) {
    all.push_back(padded(t, {2, 3}, {0, 1}, {0, 0}, {2, 1}, t == DType::f32 ? -1.5 : 3));
    all.push_back(windowed(t, 10, axis(19, 3, 2, 1, 1), axis(23, 3, 2, 1, 1), 2));
  }
  TensorType column{DType::f32, {129, 1}};
  all.push_back(moved("broadcast", column, {5, 129, 33}, broadcast_copy(column, {5, 129, 33}),
                      [](const At& at) { return at[1]; }));
  TensorType scalar{DType::i32, {}};
  all.push_back(moved("broadcast", scalar, {5}, broadcast_copy(scalar, {5}), [](const At&) { return int64_t{0}; }));
  for (DType t : {DType::f32, DType::i32, DType::f16}) {
    all.push_back(folded(t, 6, axis(5, 3, 1, 0, 1), axis(4, 2, 1, 0, 1)));
    all.push_back(folded(t, 2, axis(7, 3, 2, 1, 1), axis(6, 3, 1, 2, 2)));
    all.push_back(folded(t, 1, axis(9, 2, 3, 0, 4), axis(5, 1, 2, 0, 1)));
    all.push_back(scattered(t, 1, 5, 3, 4));
    all.push_back(scattered(t, 2, 3, 4, 6));
    all.push_back(scattered(t, 1, 4, 2, 0));
    all.push_back(scattered(t, 1, 70, 65, 129));
    all.push_back(scattered(t, 1, 10, 1, 70));
    all.push_back(scattered(t, 2, 12, 300, 200));
    all.push_back(scattered(t, 1, 1200, 256, 40));
    all.push_back(scattered(t, 9, 50, 1, 130));
    all.push_back(scattered(t, 1, 5, 264, 210));
    all.push_back(scattered(t, 2, 3, 4, 6, true));
    all.push_back(scattered(t, 2, 12, 300, 200, true));
  }
  for (int64_t n : {0, 1, 3, 4, 15, 65537}) all.push_back(bits(n, 0x123456789abcdef0ull, 17, 4294967295u));
  all.push_back(bits(9, 1, -3, 0));
  for (const Shape& s : std::vector<Shape>{{1, 7, 1}, {2, 3, 4}, {1, 0, 1}, {3, 70, 129}}) {
    Case c{"iota " + to_string(s)};
    Array y{DType::i32, {}};
    each(s, [&](size_t, const At& at) { y.at.push_back(static_cast<double>(at[1])); });
    c.expected = {y};
    c.make = [s](const Target& t) { return iota(t, s[0], s[1], s[2]); };
    all.push_back(c);
  }
  for (DType t : {DType::f32, DType::f16, DType::u8, DType::boolean, DType::i32})
    for (int64_t n : {0, 1, 1001}) {
      Case c{"fill " + std::string(name(t)) + " " + std::to_string(n)};
      c.expected = {{t, std::vector<double>(static_cast<size_t>(n), round_to(t, 1.1))}};
      c.make = [t, n](const Target& target) { return fill(target, t, n, 1.1); };
      all.push_back(c);
    }
  return all;
}

}  // namespace tutti::codegen::cases
