// Products with shapes for which devices have special kernels, and with non-finite numbers.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <thread>

#include "core/runtime/session.h"
#include "graph/ops/add.h"
#include "graph/ops/matmul.h"
#include "graph/ops/mul.h"
#include "graph/ops/relu.h"
#include "graph/ops/sum.h"
#include "verify/conformance/plugin_under_test.h"
#include "verify/parity/device_program.h"

namespace tutti::conformance {
namespace {

using parity::DeviceProgram;
using parity::Tensors;

/// Multiples of 1/8 from -1 to 1: sums of their products are exact in f32 in any order, so that any difference is an
/// error.
Tensor eighths(const Shape& shape, uint64_t seed) {
  Tensor t({DType::f32, shape});
  uint64_t bits = seed * 0x9E3779B97F4A7C15u + 1;
  for (double& x : t.at) {
    bits = bits * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<double>(static_cast<int64_t>((bits >> 33) % 17) - 8) / 8;
  }
  return t;
}

/// The value y, named `what`, must equal the float64 reference, including NaNs.
void judge(Findings& f, Session& session, Graph& g, Value y, const Tensors& inputs, const std::string& what) {
  g.set_state(what, y);
  DeviceProgram program(session, g);
  Tensor got = program.run(inputs).at(what);
  Tensor want = evaluate(g, inputs, Values{g.value(g.find_state(what)->after)})[0];
  for (size_t i = 0; i < want.at.size(); ++i) {
    double w = want.at[i], x = got.at[i];
    if (std::isnan(w) ? std::isnan(x) : x == w || std::abs(x - w) <= 1e-3) continue;
    return f.add(fmt::format("{}: element {} of {} is {}, expected {}", what, i, want.at.size(), x, w));
  }
}

void product(Findings& f, Session& session, const Shape& a, const Shape& b, bool ta, bool tb) {
  Graph g;
  Value y = matmul(g.feed("a", {DType::f32, a}), g.feed("b", {DType::f32, b}), ta, tb);
  judge(f, session, g, y, {{"a", eighths(a, 1)}, {"b", eighths(b, 2)}},
        fmt::format("{}{} times {}{}", to_string(a), ta ? " transposed" : "", to_string(b), tb ? " transposed" : ""));
}

void shapes(PluginUnderTest& plugin, Findings& f) {
  Session session(plugin.engine_device());
  struct Sizes {
    int64_t m, k, n;
    bool turned = false;  // also with the operands transposed
  };
  for (Sizes s : {Sizes{1, 37, 19},
                  {19, 37, 1},
                  {1, 300, 1},
                  {7, 1, 9},
                  {9, 40, 11, true},
                  {5, 1025, 3},
                  {33, 700, 17, true},
                  {450, 9, 451}})
    for (bool ta : {false, true})
      for (bool tb : {false, true})
        if (s.turned || (!ta && !tb))
          product(f, session, ta ? Shape{s.k, s.m} : Shape{s.m, s.k}, tb ? Shape{s.n, s.k} : Shape{s.k, s.n}, ta, tb);
}

void batches(PluginUnderTest& plugin, Findings& f) {
  Session session(plugin.engine_device());
  const std::pair<Shape, Shape> all[] = {
      {{4, 5, 6}, {4, 6, 7}}, {{4, 5, 6}, {6, 7}},          {{5, 6}, {4, 6, 7}},
      {{4, 5, 6}, {1, 6, 7}}, {{2, 1, 5, 6}, {3, 6, 7}},    {{2, 3, 5, 6}, {3, 6, 7}},
      {{1, 5, 6}, {4, 6, 7}}, {{2, 1, 5, 6}, {1, 3, 6, 7}}, {{3, 1, 6}, {3, 6, 1}}};
  for (const auto& [a, b] : all) product(f, session, a, b, false, false);
}

/// Products with bias and ReLU, which devices may fuse.
void special(PluginUnderTest& plugin, Findings& f) {
  Session session(plugin.engine_device());
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (auto [m, k, n] : {std::tuple{5, 6, 8}, {64, 64, 64}})
    for (bool bias : {false, true})
      for (bool cut : {false, true})
        for (double x : {nan, inf, -inf}) {
          Graph g;
          Tensors in = {{"a", eighths({m, k}, 3)}, {"b", eighths({k, n}, 4)}};
          for (double& v : in.at("b").at) v = v == 0 ? 0.5 : v;  // no zeros, because inf * 0 is NaN
          in.at("a").at[static_cast<size_t>(k) + 1 < in.at("a").at.size() ? static_cast<size_t>(k) + 1 : 1] = x;
          Value y = matmul(g.feed("a", {DType::f32, {m, k}}), g.feed("b", {DType::f32, {k, n}}));
          if (bias) {
            y = y + g.feed("c", {DType::f32, {n}});
            in.emplace("c", eighths({n}, 5));
          }
          judge(f, session, g, cut ? relu(y) : y, in,
                fmt::format("a product of {}x{}x{}{}{} with {} in it", m, k, n, bias ? " with bias" : "",
                            cut ? " and ReLU" : "", x));
        }
}

/// Denormal products and factors at every position of a tensor that is processed by many threads.
void denormals(PluginUnderTest& plugin, Findings& f) {
  Session session(plugin.engine_device());
  Graph g;
  TensorType t{DType::f32, {1 << 16}};
  g.set_state("y", g.feed("a", t) * g.feed("b", t));
  DeviceProgram program(session, g);
  Tensors in = {{"a", Tensor(t)}, {"b", Tensor(t)}};
  for (size_t i = 0; i < in.at("a").at.size(); ++i) {
    in.at("a").at[i] = std::ldexp(1.0, i % 2 ? -130 : -100);
    in.at("b").at[i] = i % 2 ? 1 : std::ldexp(1.0, -30);
  }
  Tensor got = program.run(in).at("y");
  std::string factors, products;
  for (size_t i = 0; i < got.at.size(); ++i)
    if (double x = got.at[i]; x != std::ldexp(1.0, -130))
      (i % 2 ? factors : products) = fmt::format("2^-130, a denormal number of f32, became {} as {} (element {})", x,
                                                 i % 2 ? "a factor" : "a product", i);
  for (const std::string& text : {products, factors})
    if (!text.empty()) f.add(text);
}

/// Two concurrent sessions whose steps need scratch memory.
void product_sessions(PluginUnderTest& plugin, Findings& f) {
  Device device = plugin.engine_device();
  Findings found[2];
  auto work = [&](size_t t) {
    try {
      Session session(device);
      Graph g;
      TensorType type{DType::f32, {48, 48}};
      Value a = g.feed("a", type), h = matmul(a, g.feed("b", type));
      g.set_state("y", matmul(h + sum(h, {0}, true), a, true) + sum(a, {1}, true));
      DeviceProgram program(session, g);
      Tensors in = {{"a", eighths({48, 48}, 10 + t)}, {"b", eighths({48, 48}, 20 + t)}};
      Tensor want = evaluate(g, in, Values{g.value(g.find_state("y")->after)})[0];
      for (int round = 0; round < 20 && found[t].empty(); ++round) {
        Tensor got = program.run(in).at("y");
        for (size_t i = 0; i < want.at.size(); ++i)
          if (!(std::abs(got.at[i] - want.at[i]) <= 1e-2)) {
            found[t].add(fmt::format("while another session is open, element {} of step {} is {}, expected {}", i,
                                     round + 1, got.at[i], want.at[i]));
            break;
          }
      }
    } catch (const std::exception& e) {
      found[t].add(e.what());
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  for (const Findings& one : found) f.add(one);
}

/// All devices of the plugin; the other checks use only one.
void product_devices(PluginUnderTest& plugin, Findings& f) {
  plugin.engine_device();
  for (const Device& d : Registry::instance().devices()) {
    if (d.plugin != plugin.setup().manifest.name || !d.unusable.empty()) continue;
    Findings here;
    try {
      Session session(d);
      product(here, session, {9, 40}, {40, 11}, false, false);
      product(here, session, {40, 9}, {11, 40}, true, true);
    } catch (const std::exception& e) {
      here.add(e.what());
    }
    if (!here.empty()) f.add(fmt::format("{} ({}): {}", d.id, d.name, here.text()));
  }
}

}  // namespace

Checks product_checks() {
  return {
      {"product.shapes", "products of one row, of many, transposed and long agree with the float64 reference", shapes},
      {"product.batches", "the leading dimensions of products broadcast", batches},
      {"product.special", "matmul, bias and ReLU propagate NaN and infinity", special},
      {"product.denormals", "denormal f32 numbers are kept", denormals, false},
      {"product.sessions", "two sessions at a time keep their scratch memory apart", product_sessions},
      {"product.devices", "every device of the plugin computes", product_devices},
  };
}

}  // namespace tutti::conformance
