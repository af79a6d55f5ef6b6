#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/philox.h"
#include "sdk/library.h"
#include "tests/codegen/cases.h"

namespace tutti::codegen::cases {
namespace {

enum class Mask { none, boolean, added };
enum class Lies { apart, packed, packed_oddly };

struct Sizes {
  int64_t batch, heads, key_heads, rows, keys, depth, width;
};

/// One attention in float64, and the kernels for it on a GPU.
struct Problem {
  Attention a;
  std::vector<Array> inputs;  ///< q, k, v, dy, lse, delta, mask, seed, step
  std::vector<double> y, lse, dq, dk, dv;

  /// `with_y`: the last input is y, and delta its sum with dy, as a library computes it.
  Problem(DType t, Sizes s, bool causal, Mask mask, double dropout, Lies lies, bool with_y = false);

 private:
  double in(size_t input, const Operand& x, int64_t b, int64_t h, int64_t i, int64_t d) const {
    return inputs[input].at[static_cast<size_t>(x.offset + b * x.strides[0] + h * x.strides[1] + i * x.strides[2] + d)];
  }
  double kept(int64_t e) const {
    if (a.dropout == 0) return 1;
    auto block = random_block(0x1122334455667788, 5, a.stream, static_cast<uint64_t>(e) / 4);
    return (block[static_cast<size_t>(e % 4)] >> 8) * 0x1p-24f < static_cast<float>(1 - a.dropout) ? 1 / (1 - a.dropout)
                                                                                                   : 0;
  }
  bool attends(int64_t b, int64_t h, int64_t i, int64_t j, double& score) const;
  void head(int64_t b, int64_t h);
};

Operand dense(DType t, int64_t heads, int64_t rows, int64_t size) {
  return {t, {heads * rows * size, rows * size, size, 1}};
}

Problem::Problem(DType t, Sizes s, bool causal, Mask mask, double dropout, Lies lies, bool with_y) {
  a = {t, s.batch, s.heads, s.key_heads, s.rows, s.keys, s.depth, s.width, 0.3, causal};
  a.dropout = dropout;
  a.stream = 9;
  a.at = {dense(t, s.heads, s.rows, s.depth), dense(t, s.key_heads, s.keys, s.depth),
          dense(t, s.key_heads, s.keys, s.width), dense(t, s.heads, s.rows, s.width)};
  auto draw = [&](int64_t n, uint32_t seed) { return random(t, n, -2, 2, seed); };
  inputs = {draw(s.batch * s.heads * s.rows * s.depth, 1), draw(s.batch * s.key_heads * s.keys * s.depth, 2),
            draw(s.batch * s.key_heads * s.keys * s.width, 3), draw(s.batch * s.heads * s.rows * s.width, 4)};
  if (lies != Lies::apart) {  // [batch, rows, 3, heads, depth]: the same memory for all three; oddly: one element more
    int64_t row = 3 * s.heads * s.depth + (lies == Lies::packed_oddly);
    Array all = draw(s.batch * s.rows * row, 5);
    for (int64_t n = 0; n < 3; ++n) {
      auto i = static_cast<size_t>(n);
      a.at[i] = {t, {s.rows * row, s.depth, row, 1}, n * s.heads * s.depth};
      inputs[i] = all;
    }
  }
  auto rows = static_cast<size_t>(s.batch * s.heads * s.rows);
  inputs.push_back({DType::f32, std::vector<double>(rows)});
  inputs.push_back(random(DType::f32, static_cast<int64_t>(rows), -1, 1, 6));
  if (mask != Mask::none) {  // broadcast along the batch
    DType type = mask == Mask::boolean ? DType::boolean : t;
    a.mask = Operand{type, {0, s.rows * s.keys, s.keys, 1}};
    inputs.push_back(random(type, s.heads * s.rows * s.keys, mask == Mask::boolean ? 0 : -1, 2, 7));
    if (mask == Mask::boolean)
      for (int64_t j = 0; j < s.keys; ++j) inputs.back().at[static_cast<size_t>(j)] = 0;  // a query without keys
  }
  if (dropout > 0) {
    inputs.push_back({DType::u32, {0x55667788, 0x11223344}});
    inputs.push_back({DType::i32, {5}});
  }
  y.resize(rows * static_cast<size_t>(s.width));
  lse.resize(rows);
  dq.resize(rows * static_cast<size_t>(s.depth));
  dk.resize(static_cast<size_t>(s.batch * s.key_heads * s.keys * s.depth));
  dv.resize(static_cast<size_t>(s.batch * s.key_heads * s.keys * s.width));
  if (with_y) a.y = dense(t, s.heads, s.rows, s.width);
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h) head(b, h);
  inputs[4].at = lse;
  if (!with_y) return;
  inputs.push_back({t, y});
  for (double& x : inputs.back().at) x = round_to(t, x);
}

bool Problem::attends(int64_t b, int64_t h, int64_t i, int64_t j, double& score) const {
  if (a.causal && j > i) return false;
  score = 0;
  int64_t key = h / (a.heads / a.key_heads);
  for (int64_t d = 0; d < a.depth; ++d) score += in(0, a.at[0], b, h, i, d) * in(1, a.at[1], b, key, j, d) * a.scale;
  if (!a.mask) return true;
  double m = inputs[6].at[static_cast<size_t>(h * a.rows * a.keys + i * a.keys + j)];
  if (a.mask->dtype == DType::boolean) return m != 0;
  score += m;
  return true;
}

void Problem::head(int64_t b, int64_t h) {
  int64_t key = h / (a.heads / a.key_heads), keys = b * a.key_heads + key;
  auto at = [](int64_t row, int64_t size, int64_t d) { return static_cast<size_t>(row * size + d); };
  for (int64_t i = 0; i < a.rows; ++i) {
    int64_t row = (b * a.heads + h) * a.rows + i;
    std::vector<double> e(static_cast<size_t>(a.keys));
    double sum = 0, score = 0;
    for (int64_t j = 0; j < a.keys; ++j)
      if (attends(b, h, i, j, score)) sum += e[static_cast<size_t>(j)] = std::exp(score);
    lse[static_cast<size_t>(row)] = sum == 0 ? 0 : std::log(sum);
    auto probability = [&](int64_t j) { return sum == 0 ? 0 : e[static_cast<size_t>(j)] / sum; };
    double& delta = inputs[5].at[static_cast<size_t>(row)];
    if (a.y) delta = 0;
    for (int64_t d = 0; d < a.width; ++d) {
      double& result = y[at(row, a.width, d)];
      for (int64_t j = 0; j < a.keys; ++j)
        result += probability(j) * kept(row * a.keys + j) * in(2, a.at[2], b, key, j, d);
      if (a.y) delta += in(3, a.at[3], b, h, i, d) * round_to(a.dtype, result);
    }
    for (int64_t j = 0; j < a.keys; ++j) {
      double p = probability(j), keep = kept(row * a.keys + j), dp = 0;
      for (int64_t d = 0; d < a.width; ++d) {
        double dy = in(3, a.at[3], b, h, i, d);
        dv[at(keys * a.keys + j, a.width, d)] += p * keep * dy;
        dp += dy * in(2, a.at[2], b, key, j, d);
      }
      double ds = p * (dp * keep - delta) * a.scale;
      for (int64_t d = 0; d < a.depth; ++d) {
        dq[at(row, a.depth, d)] += ds * in(1, a.at[1], b, key, j, d);
        dk[at(keys * a.keys + j, a.depth, d)] += ds * in(0, a.at[0], b, h, i, d);
      }
    }
  }
}

/// Targets without such kernels get those of a GPU. `busy`: of one that these groups fill.
Target gpu(Target t, bool busy) {
  t.cpu_like = false;
  if (busy) t.compute_units = 1;
  t.local_bytes = 49152;
  t.max_local = std::max(t.max_local, 128u);
  return t;
}

void add(std::vector<Case>& all, const std::string& name, DType t, Sizes s, bool causal, Mask mask = Mask::none,
         double dropout = 0, Lies lies = Lies::apart, bool busy = false, bool whole = true, bool with_y = false) {
  Problem p(t, s, causal, mask, dropout, lies, with_y);
  Case forward{"attention " + name}, backward{"gradient of attention " + name};
  backward.inputs = p.inputs;
  forward.inputs = {p.inputs[0], p.inputs[1], p.inputs[2]};
  if (!with_y) forward.inputs.insert(forward.inputs.end(), p.inputs.begin() + 6, p.inputs.end());
  Attention plain = p.a;
  plain.to = {dense(t, s.heads, s.rows, s.width)};
  plain.y.reset();
  forward.make = [a = plain, busy, whole](const Target& target) { return attention(gpu(target, busy), a, whole); };
  p.a.to = {dense(t, s.heads, s.rows, s.depth), dense(t, s.key_heads, s.keys, s.depth),
            dense(t, s.key_heads, s.keys, s.width)};
  backward.make = [a = p.a, busy, whole](const Target& target) {
    return attention_grad(gpu(target, busy), a, {whole, whole, true});
  };
  if (with_y) {
    sdk::LibraryRequest trial{.trial = true};
    backward.by_library = [=, a = p.a](const sdk::Library& l) { return l.attention_grad(a, trial); };
    forward.by_library = [=, a = plain](const sdk::Library& l) { return l.attention(a, true, trial); };
  }
  forward.expected = {{t, p.y}};
  if (whole) {
    forward.expected.push_back({DType::f32, p.lse});
    backward.expected = {{t, p.dq}, {t, p.dk}};
  }
  backward.expected.push_back({t, p.dv});
  forward.relative = t == DType::f32 ? 1e-5 : 8e-3;
  forward.absolute = t == DType::f32 ? 1e-5 : 8e-3;
  backward.relative = t == DType::f32 ? 3e-5 : 8e-3;
  // The gradient of a score is rounded to the dtype before it is multiplied.
  backward.absolute = t == DType::f32 ? 3e-5 : t == DType::bf16 ? 4e-2 : 2e-2;
  all.push_back(forward);
  all.push_back(backward);
}

}  // namespace

std::vector<Case> attention_cases() {
  constexpr DType f = DType::f32;
  std::vector<Case> all;
  add(all, "of one tile", f, {1, 2, 2, 7, 9, 5, 3}, false);
  add(all, "causal", f, {2, 2, 2, 70, 70, 24, 24}, true);
  add(all, "y and dv alone", f, {1, 1, 1, 7, 9, 5, 3}, false, Mask::none, 0, Lies::apart, false, false);
  add(all, "of shared heads", f, {1, 4, 2, 33, 65, 16, 40}, false);
  add(all, "with a bool mask", f, {2, 2, 1, 34, 40, 8, 8}, false, Mask::boolean);
  add(all, "with an added mask", f, {1, 2, 2, 40, 40, 20, 8}, true, Mask::added);
  add(all, "with dropout", f, {1, 2, 2, 40, 50, 8, 8}, false, Mask::none, 0.3);
  add(all, "without any probability", f, {1, 1, 1, 5, 6, 4, 4}, false, Mask::none, 1);
  add(all, "of packed heads in bf16", DType::bf16, {2, 2, 2, 37, 37, 64, 64}, true, Mask::none, 0, Lies::packed);
  add(all, "in f16", DType::f16, {1, 2, 1, 20, 35, 128, 32}, false, Mask::added, 0.1);
  return all;
}

std::vector<Case> tensor_core_attention_cases() {
  constexpr DType b = DType::bf16, h = DType::f16;
  std::vector<Case> all;
  add(all, "of shared heads in bf16", b, {1, 2, 1, 70, 90, 16, 32}, false);
  add(all, "causal in f16", h, {1, 1, 1, 90, 90, 16, 16}, true, Mask::none, 0.2);
  add(all, "causal of shared heads on a busy device in bf16", b, {1, 2, 1, 90, 70, 32, 16}, true, Mask::none, 0,
      Lies::apart, true);
  add(all, "of packed heads at odd places with a bool mask in f16", h, {1, 2, 2, 20, 20, 16, 16}, false, Mask::boolean,
      0, Lies::packed_oddly);
  add(all, "of 128 elements with an added mask in f16", h, {1, 1, 1, 20, 40, 128, 16}, false, Mask::added, 0.1);
  add(all, "y and dv alone in bf16", b, {1, 1, 1, 20, 40, 16, 16}, false, Mask::none, 0, Lies::apart, false, false);
  add(all, "of values of 112 elements in bf16", b, {1, 1, 1, 20, 40, 16, 112}, true);
  return all;
}

std::vector<Case> library_attention_cases(DType t) {
  std::vector<Case> all;
  auto add_one = [&](const char* text, Sizes s, bool causal, Lies lies = Lies::apart) {
    add(all, fmt::format("{} in {}", text, name(t)), t, s, causal, Mask::none, 0, lies, false, true, true);
  };
  add_one("of a library", {2, 2, 2, 40, 48, 32, 16}, false);
  add_one("of a library, causal", {1, 2, 2, 70, 70, 64, 64}, true);
  add_one("of a library, of shared heads", {2, 4, 2, 33, 65, 32, 32}, true);
  add_one("of a library, of packed heads", {2, 2, 2, 37, 37, 64, 64}, true, Lies::packed);
  return all;
}

}  // namespace tutti::codegen::cases
