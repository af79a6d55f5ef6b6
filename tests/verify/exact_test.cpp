// Exact numerics: every device has the bits of the reference (docs/EXACT.md).
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>

#include "core/runtime/selector.h"
#include "graph/functions.h"
#include "graph/ops.h"
#include "tests/support/device_run.h"
#include "train/run/exact_proof.h"
#include "train/run/trainer.h"
#include "verify/parity/compare.h"
#include "verify/parity/suite.h"

namespace tutti {
namespace {

const std::map<std::string, std::string> exact = {{"numerics", "exact"}};

Device reference() { return select_device("reference:0"); }

std::vector<float> run_exact(const Graph& g, const Device& device, const HostTensors& inputs) {
  return run(g, device, inputs, exact).at("y").as<float>();
}

/// The order of a product, written here once more: 1024 terms at a time.
TEST(Exact, ProductsFollowThePage) {
  constexpr int64_t depth = 2500;
  std::vector<float> a(depth), b(depth);
  for (size_t k = 0; k < depth; ++k) a[k] = std::sin(float(k)), b[k] = std::cos(float(3 * k));
  float y = 0;
  for (int64_t part = 0; part < depth; part += 1024) {
    float sum = 0;
    for (int64_t k = part; k < std::min(depth, part + 1024); ++k) {
      volatile float term = a[size_t(k)] * b[size_t(k)];
      sum = sum + term;
    }
    y = part ? y + sum : sum;
  }
  Graph g;
  g.set_state("y", matmul(g.feed("a", {DType::f32, {1, depth}}), g.feed("b", {DType::f32, {depth, 1}})));
  HostTensors in = {{"a", host_tensor(DType::f32, {1, depth}, a)}, {"b", host_tensor(DType::f32, {depth, 1}, b)}};
  std::vector<Device> devices = test::devices_under_test();
  devices.push_back(reference());
  for (const Device& d : devices) EXPECT_EQ(run_exact(g, d, in)[0], y) << d.id;
}

TEST(Exact, SumsFollowThePage) {
  constexpr size_t n = 9001;
  std::vector<float> x(n), pieces;
  for (size_t k = 0; k < n; ++k) x[k] = std::sin(float(k)) * float(k % 97);
  auto fold = [](const float* from, size_t count) {
    float lanes[16] = {};
    for (size_t i = 0; i < count; ++i) lanes[i % 16] += from[i];
    for (size_t half : {8, 4, 2, 1})
      for (size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    return lanes[0];
  };
  for (size_t at = 0; at < n; at += 4096) pieces.push_back(fold(x.data() + at, std::min<size_t>(4096, n - at)));
  float y = fold(pieces.data(), pieces.size());
  Graph g;
  g.set_state("y", sum(g.feed("x", {DType::f32, {n}})));
  std::vector<Device> devices = test::devices_under_test();
  devices.push_back(reference());
  for (const Device& d : devices) EXPECT_EQ(run_exact(g, d, {{"x", host_tensor(DType::f32, {n}, x)}})[0], y) << d.id;
}

/// 0 / 0 has the sign bit on x86, and +NaN elsewhere; a NaN of the input keeps its bits in some operations.
TEST(Exact, ANanIsReadWithTheSameBits) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {4}});
  g.set_state("y", x / x);
  const float nan = std::bit_cast<float>(0xffc12345u), inf = std::bit_cast<float>(0x7f800000u);
  HostTensors in = {{"x", host_tensor(DType::f32, {4}, std::vector<float>{0, nan, inf, 2})}};
  std::vector<Device> devices = test::devices_under_test();
  devices.push_back(reference());
  for (const Device& d : devices) {
    std::vector<float> y = run_exact(g, d, in);
    for (size_t k = 0; k < 3; ++k) EXPECT_EQ(std::bit_cast<uint32_t>(y[k]), 0x7fc00000u) << d.id << " " << k;
    EXPECT_EQ(y[3], 1);
  }
}

TEST(Exact, EveryDeviceProvesItself) {
  for (const Device& d : test::devices_under_test())  // software devices compile for a minute: Exact.devices
    if (d.kind != DeviceKind::software) EXPECT_NO_THROW(prove_exact(d, {})) << d.id;
}

TEST(Exact, OpsHaveTheBitsOfTheReference) {
  std::vector<Device> fast;
  for (const Device& d : test::devices_under_test())
    if (d.kind != DeviceKind::software) fast.push_back(d);
  if (fast.empty()) GTEST_SKIP() << "no device besides the reference";
  std::vector<parity::CaseId> cases;
  for (const OpDef* op : all_ops())
    for (const parity::CaseId& id : parity::cases_of(*op, parity::Extent::quick))
      if (parity::has_exact(id)) cases.push_back(id);
  EXPECT_GT(cases.size(), 150u);
  parity::Report report = run(fast, cases, {.seed = 5, .exact = true});
  for (const parity::DeviceResult& d : report.devices)
    for (const parity::CaseResult& c : d.cases)
      EXPECT_EQ(c.outcome, parity::Outcome::pass) << d.replay(c, 5) << "\n  " << c.why;
}

/// One bit of one element.
TEST(Exact, AnotherBitIsADifference) {
  parity::SuiteOptions options{.seed = 5, .exact = true};
  options.tamper = [](const auto&, int, std::vector<Tensor>& results, const auto&) {
    float x = static_cast<float>(results[0].at[3]);
    results[0].at[3] = std::bit_cast<float>(std::bit_cast<uint32_t>(x) ^ 1u);
  };
  parity::CaseResult c = run({reference()}, {parity::parse_case("add:0:forward:f32")}, options).devices[0].cases[0];
  EXPECT_EQ(c.outcome, parity::Outcome::fail);
  EXPECT_NE(c.why.find("have other bits, the first is 3: 0x"), std::string::npos) << c.why;
  Tensor plus({DType::f32, {1}}), minus = plus;
  minus.at[0] = -0.0;
  EXPECT_FALSE(parity::compare_bits(minus, plus).ok);
}

}  // namespace
}  // namespace tutti
