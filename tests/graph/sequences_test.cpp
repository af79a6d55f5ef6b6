// What works on sequences: the functions lstm, gru and rotary against PyTorch's numbers (sequences_golden.py), and
// attention where PyTorch has none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "graph/autodiff/autodiff.h"
#include "graph/eval.h"
#include "graph/functions.h"
#include "graph/ops.h"
#include "tests/support/error_of.h"

namespace tutti {
namespace {

using test::error_from;
using testing::Each;
using testing::HasSubstr;

class Sequences : public testing::Test {
 protected:
  Graph g;
  std::map<std::string, Tensor> in;

  /// Element i of tensor k: sin(0.7 i + k).
  Value wave(int k, const Shape& shape) {
    std::string name = "x" + std::to_string(in.size());
    Tensor t({DType::f64, shape});
    for (size_t i = 0; i < t.at.size(); ++i) t.at[i] = std::sin(0.7 * static_cast<double>(i) + k);
    in.emplace(name, t);
    return g.feed(name, t.type);
  }
  Value numbers(TensorType type, std::vector<double> at) {
    std::string name = "x" + std::to_string(in.size());
    Tensor t(std::move(type));
    t.at = std::move(at);
    in.emplace(name, t);
    return g.feed(name, t.type);
  }
  Tensor value(Value v) { return evaluate(g, in, {v})[0]; }
  void expect_digests(const Values& values, const std::vector<double>& want) {
    ASSERT_EQ(values.size(), want.size());
    std::vector<Tensor> got = evaluate(g, in, values);
    for (size_t k = 0; k < want.size(); ++k) {
      double sum = 0;
      for (size_t i = 0; i < got[k].at.size(); ++i) sum += got[k].at[i] * std::cos(static_cast<double>(i));
      EXPECT_NEAR(sum, want[k], 1e-10) << "value " << k;
    }
  }

  /// Two layers, batch first: results, then the gradients to x, the first states and all weights.
  void expect_recurrent(bool lstm_cells, bool bidirectional, Value lengths, const std::vector<double>& results,
                        const std::vector<double>& grads) {
    int64_t t = 4, n = 3, i = 2, h = 3, gates = lstm_cells ? 4 : 3, directions = bidirectional ? 2 : 1;
    std::vector<RecurrentWeights> weights;
    Values wrt = {wave(5, {n, t, i}), wave(6, {2 * directions, n, h})};
    if (lstm_cells) wrt.push_back(wave(7, {2 * directions, n, h}));
    for (int k = 0; k < 2 * directions; ++k) {
      weights.push_back({wave(10 * k + 1, {gates * h, k < directions ? i : h * directions}),
                         wave(10 * k + 2, {gates * h, h}), wave(10 * k + 3, {gates * h}),
                         wave(10 * k + 4, {gates * h})});
      wrt.insert(wrt.end(), {weights.back().w_ih, weights.back().w_hh, weights.back().b_ih, weights.back().b_hh});
    }
    RecurrentOptions o{.bidirectional = bidirectional, .batch_first = true, .lengths = lengths};
    RecurrentResult r = lstm_cells ? lstm(wrt[0], wrt[1], wrt[2], weights, o) : gru(wrt[0], wrt[1], weights, o);
    Values out = {r.y, r.h_n}, seeds;
    if (lstm_cells) out.push_back(r.c_n);
    for (size_t k = 0; k < out.size(); ++k) seeds.push_back(wave(20 + static_cast<int>(k), out[k].shape()));
    expect_digests(out, results);
    expect_digests(gradients(out, seeds, wrt), grads);
  }
  Value lengths() { return numbers({DType::i32, {3}}, {4, 1, 3}); }
};

TEST_F(Sequences, LstmIsPyTorchs) {
  expect_recurrent(true, false, {}, {1.82963331677, 1.22434522749, 2.17140556412},
                   {0.342434242985, -1.85809955809, -0.812005325311, 0.113253746425, 0.133376885188, 0.0996780340812,
                    0.0996780340812, 0.121253559107, 0.38011044065, -0.0570789997263, -0.0570789997263});
}

TEST_F(Sequences, LstmOfBothDirectionsStopsAtLengths) {
  expect_recurrent(
      true, true, lengths(), {-3.05096026241, 0.610071718403, 1.53405680118},
      {-1.16835575827, -2.8904335826, 0.293276980156, 0.943712939864, -0.101165500456, 0.382770480535, 0.382770480535,
       -1.10493929734, 0.464201208921, 2.0616278079, 2.0616278079, -0.331188920818, -0.029864093588, 0.192087547701,
       0.192087547701, -0.261278463694, 0.635312477885, 0.849021516297, 0.849021516297});
}

TEST_F(Sequences, GruIsPyTorchs) {
  expect_recurrent(false, false, {}, {-0.381908351194, 1.58806683412},
                   {-0.420647467364, -1.40666023008, 0.140940828192, -0.0876729471235, -0.589695755899, -0.182275714969,
                    -2.70439681366, -0.101522661678, 0.305723643185, 0.300043035356});
}

TEST_F(Sequences, GruOfBothDirectionsStopsAtLengths) {
  expect_recurrent(false, true, lengths(), {1.54154025236, 1.37047666196},
                   {-1.75348581285, 1.92726333992, 0.233592056595, -0.474575830664, -0.680171287294, -0.311891860595,
                    -0.674786870501, -1.03304921569, 1.69079166857, 1.04169455622, -0.502426670373, 0.80101005936,
                    1.09073639898, 0.871980911289, 2.90921484395, 0.418112984589, 2.40036744336, 1.70097125526});
}

TEST_F(Sequences, RecurrentDefaultsAreZeros) {
  Value x = wave(1, {4, 3, 2}), zero = numbers({DType::f64, {1, 3, 5}}, std::vector<double>(15));
  RecurrentWeights w{wave(2, {20, 2}), wave(3, {20, 5})};
  EXPECT_EQ(value(lstm(x, {}, {}, {w}).y).at, value(lstm(x, zero, zero, {w}).y).at);
  RecurrentWeights v{wave(2, {15, 2}), wave(3, {15, 5})};
  EXPECT_EQ(value(gru(x, {}, {v}).y).at, value(gru(x, zero, {v}).y).at);
}

TEST_F(Sequences, DropoutIsBetweenLayers) {
  Value x = wave(1, {4, 3, 2}), seed = numbers({DType::u32, {2}}, {1, 2}), step = numbers({DType::i32, {}}, {3});
  std::vector<RecurrentWeights> w = {{wave(2, {20, 2}), wave(3, {20, 5})}, {wave(4, {20, 5}), wave(5, {20, 5})}};
  Value first = lstm(x, {}, {}, {w[0]}).y;
  RecurrentOptions o{.dropout = 0.5, .seed = seed, .step = step, .stream = 7};
  EXPECT_EQ(value(lstm(x, {}, {}, {w[0]}, o).y).at, value(first).at);
  EXPECT_EQ(value(lstm(x, {}, {}, w, o).y).at, value(lstm(dropout(first, seed, step, 0.5, 8), {}, {}, {w[1]}).y).at);
}

TEST_F(Sequences, RotaryTurnsPairs) {
  Value x = wave(1, {2, 2, 3, 6}), d = wave(2, {2, 2, 3, 6});
  auto expect = [&](const RotaryOptions& o, const std::vector<double>& want) {
    Value y = rotary(x, o);
    expect_digests({y, gradients({y}, {d}, {x})[0]}, want);
  };
  expect({}, {0.0882607870848, 2.33920601804});
  expect({.base = 100, .interleaved = true, .offset = 5}, {-2.21557873281, 5.46909234698});
  Value positions = numbers({DType::i32, {2, 1, 3}}, {3, 1, 2, 0, 7, 4});
  expect({.positions = positions}, {0.250149404991, -5.56777862098});
}

TEST_F(Sequences, AttentionToNothingIsZero) {
  Value q = wave(1, {1, 2, 3, 4}), k = wave(2, {1, 2, 2, 4}), v = wave(3, {1, 2, 2, 4});
  Value mask = numbers({DType::boolean, {3, 2}}, {1, 1, 0, 0, 0, 1});
  Values y = attention_with_lse(q, k, v, {.mask = mask});
  Tensor rows = value(slice(y[0], {0, 0, 1, 0}, {1, 2, 2, 4})), lse = value(slice(y[1], {0, 0, 1}, {1, 2, 2}));
  EXPECT_THAT(rows.at, Each(0.0));
  EXPECT_THAT(lse.at, Each(0.0));
  for (Value d : gradients({y[0]}, {wave(4, {1, 2, 3, 4})}, {q, k, v}))
    for (double x : value(d).at) EXPECT_TRUE(std::isfinite(x));
  Value none = wave(5, {1, 2, 0, 4});
  EXPECT_THAT(value(attention(q, none, none)).at, Each(0.0));
}

/// Dropout of the probabilities: the rows of an identity as values show them.
TEST_F(Sequences, AttentionDropsProbabilities) {
  Value q = wave(1, {1, 1, 4, 3}), k = wave(2, {1, 1, 4, 3});
  Value seed = numbers({DType::u32, {2}}, {1, 2}), step = numbers({DType::i32, {}}, {3});
  std::vector<double> eye(16);
  for (size_t i = 0; i < 4; ++i) eye[5 * i] = 1;
  Value v = numbers({DType::f64, {1, 1, 4, 4}}, eye);
  Value p = attention(q, k, v);
  Tensor got = value(attention(q, k, v, {.dropout = 0.3, .seed = seed, .step = step, .stream = 5}));
  Tensor want = value(dropout(p, seed, step, 0.3, 5));
  for (size_t i = 0; i < 16; ++i) EXPECT_NEAR(got.at[i], want.at[i], 1e-14);
}

/// One value as all three operands, twice differentiated: what a node's inputs share counts once.
TEST_F(Sequences, SecondDerivativeOfSelfAttention) {
  Value x = wave(1, {1, 1, 3, 2}), d = wave(2, {1, 1, 3, 2}), r = wave(3, {1, 1, 3, 2});
  auto slope = [&] { return gradients({attention(x, x, x)}, {d}, {x})[0]; };
  Value first = slope(), second = gradients({first}, {r}, {x})[0];
  Tensor got = value(second);
  std::vector<double>& at = in.at(g.info(x.id()).name).at;
  for (size_t e = 0; e < at.size(); ++e) {
    double middle = at[e], step = 1e-5, total = 0;
    at[e] = middle + step;
    Tensor high = value(first);
    at[e] = middle - step;
    Tensor low = value(first), seed = value(r);
    at[e] = middle;
    for (size_t i = 0; i < high.at.size(); ++i) total += (high.at[i] - low.at[i]) * seed.at[i] / (2 * step);
    EXPECT_NEAR(got.at[e], total, 1e-8);
  }
}

TEST_F(Sequences, WhatDoesNotFitIsNamed) {
  auto says = [](auto f) { return std::string(error_from(f).what()) + " | " + error_from(f).remedy; };
  Value q = wave(1, {2, 4, 3, 6}), k = wave(2, {2, 3, 5, 6}), half = wave(3, {2, 2, 5, 6});
  EXPECT_THAT(says([&] { attention(q, k, k); }), HasSubstr("the 4 query heads must be a multiple of the 3"));
  EXPECT_THAT(says([&] { attention(q, half, k); }), HasSubstr("[2, Hkv, S, Dv]"));
  EXPECT_THAT(says([&] { attention(reshape(q, {8, 3, 6}), k, k); }), HasSubstr("[batch, heads, length, size]"));
  EXPECT_THAT(says([&] { attention(q, half, half, {.mask = wave(4, {5, 3})}); }), HasSubstr("not broadcast"));
  EXPECT_THAT(says([&] { attention(q, half, half, {.dropout = 0.5}); }), HasSubstr("without seed and step"));
  EXPECT_THAT(says([&] { attention(q, half, half, {.dropout = 1.5, .seed = q, .step = q}); }), HasSubstr("[0, 1]"));
  EXPECT_THAT(says([&] { rotary(wave(5, {1, 1, 2, 3})); }), HasSubstr("even D"));
  EXPECT_THAT(says([&] { rotary(q, {.positions = q}); }), HasSubstr("i32"));
  RecurrentWeights w{wave(6, {20, 2}), wave(7, {20, 5})};
  Value x = wave(8, {4, 3, 2});
  EXPECT_THAT(says([&] { lstm(x, {}, {}, {}); }), HasSubstr("one RecurrentWeights per layer"));
  EXPECT_THAT(says([&] { lstm(x, {}, {}, {w}, {.bidirectional = true}); }), HasSubstr("2 directions"));
  EXPECT_THAT(says([&] { lstm(x, x, {}, {w}); }), HasSubstr("[1, 3, 5]"));
  EXPECT_THAT(says([&] { gru(x, {}, {w}); }), HasSubstr("[T, N, 3 * H]"));
  EXPECT_THAT(says([&] { gru(reshape(x, {12, 2}), {}, {w}); }), HasSubstr("batch_first"));
  EXPECT_THAT(says([&] { lstm(x, {}, {}, {w}, {.lengths = x}); }), HasSubstr("lengths must be i32[3]"));
}

}  // namespace
}  // namespace tutti
