// Attention and its gradient beside plain loops in float64, on every instruction set, at sizes that no block divides.
#include "kernels/cpu/attention.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/base/philox.h"
#include "core/base/rounding.h"

using namespace tutti;
using namespace tutti::kernels;

namespace {

constexpr uint32_t seed[2] = {77, 5};
constexpr int32_t step = 3;

double number(uint64_t i) { return static_cast<double>(random_block(11, 0, 0, i)[0] >> 8) / 8388608.0 - 1.0; }

/// A tensor in its storage, and what that holds in float64.
struct Numbers {
  std::vector<float> floats;
  std::vector<uint16_t> halves;
  std::vector<double> exact;

  Numbers(int64_t n, Storage s, uint64_t start, double factor) : floats(static_cast<size_t>(n)), halves(floats.size()) {
    for (size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>(factor * number(start + i));
    if (s != Storage::word) {
      isa_kernels().store(s)(halves.data(), floats.data(), nullptr, nullptr, n);
      isa_kernels().load(s)(floats.data(), halves.data(), nullptr, nullptr, n);
    }
    exact.assign(floats.begin(), floats.end());
  }
  const void* data(Storage s) const {
    return s == Storage::word ? static_cast<const void*>(floats.data()) : halves.data();
  }
};

enum class Mask { none, boolean, added };

struct Case {
  const char* name;
  Attention a;
  Mask mask = Mask::none;
  bool mask_of_heads = true;  ///< else one for all heads
};

/// What a run gives, as floats.
struct Given {
  std::vector<float> y, lse, dq, dk, dv;
};

class Problem {
 public:
  explicit Problem(const Case& c)
      : a(c.a),
        mask_(c.mask),
        q(a.batch * a.heads * a.queries * a.size, a.storage, 0, 1.5),
        k(a.batch * a.key_heads * a.keys * a.size, a.storage, 1000000, 1.5),
        v(a.batch * a.key_heads * a.keys * a.value_size, a.storage, 2000000, 1),
        dy(a.batch * a.heads * a.queries * a.value_size, a.storage, 3000000, 1),
        added(a.batch * a.heads * a.queries * a.keys, a.storage, 4000000, 2) {
    for (double x : added.exact) attends.push_back(x < 0.8 ? 1 : 0);
    // The first query of the last head attends to nothing.
    std::fill_n(attends.end() - a.queries * a.keys, a.keys, 0);
    if (mask_ != Mask::none) {
      int64_t head = c.mask_of_heads ? a.queries * a.keys : 0;
      a.mask = {true, mask_ == Mask::boolean ? Storage::boolean : a.storage, a.heads * a.queries * a.keys, head, a.keys,
                1};
    }
    evaluate();
  }

  Given run(const IsaKernels* loops, int threads) const {
    Attention f = a;
    f.loops = loops;
    Attention::More more{mask_ == Mask::boolean ? attends.data() : added.data(a.storage), seed, &step};
    std::vector<float> scratch(std::max(f.scratch_bytes(threads), f.grad_scratch_bytes(threads)) / 4, NAN);
    auto* bytes = reinterpret_cast<std::byte*>(scratch.data());
    Given g;
    g.lse.resize(lse.size());
    std::vector<float> of_lse(lse.begin(), lse.end()), of_delta(delta.begin(), delta.end());
    auto stored = [&](std::vector<float>& to, size_t n) {
      to.assign(n, 7);
      return static_cast<void*>(to.data());
    };
    void *at_y = stored(g.y, y.size()), *at_dq = stored(g.dq, dq.size()), *at_dk = stored(g.dk, dk.size()),
         *at_dv = stored(g.dv, dv.size());
    auto d = [&](const Numbers& x) { return x.data(a.storage); };
    f.run(d(q), d(k), d(v), more, at_y, g.lse.data(), bytes, threads);
    f.run_grad(d(q), d(k), d(v), d(dy), of_lse.data(), of_delta.data(), more, at_dq, at_dk, at_dv, bytes, threads);
    if (a.storage != Storage::word)
      for (auto* x : {&g.y, &g.dq, &g.dk, &g.dv}) {
        std::vector<float> narrow(*x);
        isa_kernels().load(a.storage)(x->data(), narrow.data(), nullptr, nullptr, static_cast<int64_t>(x->size()));
      }
    return g;
  }

  Attention a;
  std::vector<double> y, lse, delta, dq, dk, dv;

 private:
  double kept(int64_t element) const {
    if (a.dropout.p == 0) return 1;
    auto word = random_block(uint64_t{seed[1]} << 32 | seed[0], static_cast<uint32_t>(step), a.dropout.stream,
                             static_cast<uint64_t>(element / 4))[static_cast<size_t>(element % 4)];
    return (word >> 8) * 0x1p-24 < static_cast<double>(static_cast<float>(1 - a.dropout.p)) ? 1 / (1 - a.dropout.p) : 0;
  }

  void evaluate() {
    auto at = [](int64_t i) { return static_cast<size_t>(i); };
    int64_t rows = a.batch * a.heads * a.queries, group = a.heads / a.key_heads;
    y.resize(at(rows * a.value_size)), lse.resize(at(rows)), delta.resize(at(rows));
    dq.resize(q.exact.size()), dk.resize(k.exact.size()), dv.resize(v.exact.size());
    for (int64_t r = 0; r < rows; ++r) {
      int64_t t = r % a.queries, h = r / a.queries % a.heads, b = r / a.queries / a.heads;
      int64_t first = (b * a.key_heads + h / group) * a.keys;
      std::vector<double> p(at(a.keys));
      double total = 0;
      for (int64_t s = 0; s < a.keys; ++s) {
        double score = 0;
        for (int64_t i = 0; i < a.size; ++i)
          score += q.exact[at(r * a.size + i)] * k.exact[at((first + s) * a.size + i)];
        score *= static_cast<double>(a.scale);
        int64_t m = b * a.mask.batch + h * a.mask.head + t * a.mask.query + s;
        if (mask_ == Mask::added) score += added.exact[at(m)];
        bool in = (mask_ != Mask::boolean || attends[at(m)]) && (!a.causal || s <= t);
        p[at(s)] = in ? std::exp(score) : 0;
        total += p[at(s)];
      }
      lse[at(r)] = total > 0 ? std::log(total) : 0;
      for (int64_t s = 0; s < a.keys && total > 0; ++s) {
        p[at(s)] /= total;
        for (int64_t i = 0; i < a.value_size; ++i)
          y[at(r * a.value_size + i)] += kept(r * a.keys + s) * p[at(s)] * v.exact[at((first + s) * a.value_size + i)];
      }
      for (int64_t i = 0; i < a.value_size; ++i)
        delta[at(r)] += dy.exact[at(r * a.value_size + i)] * y[at(r * a.value_size + i)];
      for (int64_t s = 0; s < a.keys; ++s) {
        double dp = 0, keep = kept(r * a.keys + s);
        for (int64_t i = 0; i < a.value_size; ++i) {
          double d = dy.exact[at(r * a.value_size + i)];
          dp += keep * d * v.exact[at((first + s) * a.value_size + i)];
          dv[at((first + s) * a.value_size + i)] += keep * p[at(s)] * d;
        }
        double ds = p[at(s)] * (dp - delta[at(r)]) * static_cast<double>(a.scale);
        for (int64_t i = 0; i < a.size; ++i) {
          dq[at(r * a.size + i)] += ds * k.exact[at((first + s) * a.size + i)];
          dk[at((first + s) * a.size + i)] += ds * q.exact[at(r * a.size + i)];
        }
      }
    }
  }

  Mask mask_;
  Numbers q, k, v, dy, added;
  std::vector<uint8_t> attends;
};

void expect_close(const std::vector<float>& y, const std::vector<double>& want, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(y.size(), want.size());
  double largest = 0;
  for (double x : want) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_NEAR(static_cast<double>(y[i]), want[i], tolerance * largest) << what << " " << i;
}

Attention sizes(int64_t batch, int64_t heads, int64_t key_heads, int64_t queries, int64_t keys, int64_t size,
                int64_t value_size, bool causal = false, Storage s = Storage::word) {
  return {batch, heads, key_heads, queries, keys, size, value_size, 0.3f, causal, s};
}

std::vector<Case> cases() {
  std::vector<Case> all = {{"one of each", sizes(1, 1, 1, 1, 1, 1, 1)},
                           {"few", sizes(2, 3, 3, 5, 7, 3, 5)},
                           {"one block and one query", sizes(1, 2, 2, 65, 129, 16, 16)},
                           {"one query", sizes(2, 4, 2, 1, 300, 24, 24)},
                           {"causal", sizes(2, 2, 2, 150, 150, 20, 33, true)},
                           {"causal, more keys", sizes(1, 1, 1, 70, 200, 8, 8, true)},
                           {"causal, fewer keys", sizes(1, 1, 1, 200, 70, 8, 8, true)},
                           {"groups", sizes(2, 6, 2, 37, 37, 7, 9, true)},
                           {"bool mask", sizes(2, 2, 1, 67, 140, 8, 4), Mask::boolean},
                           {"bool mask, causal", sizes(1, 2, 2, 90, 90, 8, 4, true), Mask::boolean},
                           {"one bool mask for heads", sizes(1, 3, 3, 20, 31, 6, 6), Mask::boolean, false},
                           {"added mask", sizes(1, 2, 2, 67, 140, 8, 4), Mask::added},
                           {"dropout", sizes(1, 2, 2, 67, 139, 8, 4)},
                           {"dropout, causal", sizes(2, 2, 1, 90, 90, 8, 8, true)},
                           {"f16", sizes(1, 4, 2, 75, 101, 18, 7, true, Storage::f16), Mask::added},
                           {"bf16", sizes(1, 4, 2, 75, 101, 18, 7, true, Storage::bf16), Mask::added},
                           {"bf16, odd", sizes(2, 2, 2, 130, 131, 17, 21, false, Storage::bf16)},
                           {"bf16, wide", sizes(1, 2, 2, 130, 130, 64, 64, true, Storage::bf16), Mask::boolean}};
  for (Case& c : all)
    if (std::string_view(c.name).starts_with("dropout")) c.a.dropout = {0.3, 9};
  return all;
}

TEST(Attention, AgreesWithFloat64) {
  for (const Case& c : cases()) {
    Problem p(c);
    double tolerance = c.a.storage == Storage::word ? 3e-6 : c.a.storage == Storage::f16 ? 6e-4 : 4.5e-3;
    for (const char* isa : {"baseline", "avx2", "avx512", "avx512_bf16"}) {
      const IsaKernels* loops = isa_kernels_named(isa);
      if (!loops) continue;
      Given g = p.run(loops, 2);
      std::string what = fmt::format("{} on {}: ", c.name, isa);
      expect_close(g.y, p.y, tolerance, what + "y");
      expect_close(g.lse, p.lse, 3e-6, what + "lse");
      expect_close(g.dq, p.dq, tolerance, what + "dq");
      expect_close(g.dk, p.dk, tolerance, what + "dk");
      expect_close(g.dv, p.dv, tolerance, what + "dv");
    }
  }
}

TEST(Attention, SameBitsOnAnyNumberOfThreads) {
  for (const Case& c : cases()) {
    Problem p(c);
    Given one = p.run(&isa_kernels(), 1), three = p.run(&isa_kernels(), 3);
    EXPECT_EQ(one.y, three.y) << c.name;
    EXPECT_EQ(one.lse, three.lse) << c.name;
    EXPECT_EQ(one.dq, three.dq) << c.name;
    EXPECT_EQ(one.dk, three.dk) << c.name;
    EXPECT_EQ(one.dv, three.dv) << c.name;
  }
}

TEST(Attention, NanReachesItsQueryAlone) {
  Attention a = sizes(1, 1, 1, 70, 70, 4, 4);
  std::vector<float> q(280), kv(280), y(280), lse(70), scratch(a.scratch_bytes(1) / 4);
  for (size_t i = 0; i < q.size(); ++i) q[i] = kv[i] = static_cast<float>(number(i));
  q[4 * 66 + 1] = NAN;
  a.run(q.data(), kv.data(), kv.data(), {}, y.data(), lse.data(), reinterpret_cast<std::byte*>(scratch.data()), 1);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 4 == 66) << i;
}

TEST(Attention, ScoresFarApart) {
  for (const char* isa : {"baseline", "avx2", "avx512", "avx512_bf16"}) {
    const IsaKernels* loops = isa_kernels_named(isa);
    if (!loops) continue;
    float s[4 * 16], high[16], total[16] = {}, rescale[16], lse[16];
    std::fill_n(high, 16, -INFINITY);
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 16; ++j) s[i * 16 + j] = static_cast<float>(j < 8 ? i * 200 : -i * 200);
    EXPECT_TRUE(loops->softmax_block(s, high, total, rescale, 4, 16));
    loops->softmax_block_end(lse, total, high, 16);
    for (int j = 0; j < 16; ++j) {
      EXPECT_EQ(high[j], j < 8 ? 600.0f : 0.0f);
      EXPECT_EQ(total[j], 1.0f);
      EXPECT_EQ(lse[j], high[j]);
      for (int i = 0; i < 4; ++i) EXPECT_EQ(s[i * 16 + j], i == (j < 8 ? 3 : 0) ? 1.0f : 0.0f);
    }
  }
}

}  // namespace
