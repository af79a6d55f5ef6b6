// PyTorch's values where numbers end (edges.json), on every device: results and gradients in f32, f16 and bf16.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/base/status.h"
#include "graph/autodiff/autodiff.h"
#include "graph/eval.h"
#include "graph/ops.h"
#include "tests/golden/golden_data.h"
#include "tests/support/device_run.h"

namespace tutti {
namespace {

using nlohmann::json;

/// Ops whose terms cancel, so that f32 leaves an error as a share of the terms, not of the result.
const std::set<std::string> cancelling = {"expm1", "gelu",        "sigmoid",         "silu",         "softmax",
                                          "tanh",  "log_softmax", "bce_with_logits", "cross_entropy"};

/// A state of the graph and what it must hold.
struct Expected {
  std::string what;
  Tensor want;       ///< float64 where the result is a float
  double terms = 0;  ///< what terms that cancel may be worth
};

/// All cases of one format as one program.
struct Cases {
  Graph graph;
  std::map<std::string, Tensor> given;
  std::map<std::string, Expected> expected;
};

Tensor retyped(Tensor t, DType to) {
  if (!is_float(t.type.dtype)) return t;
  t.type.dtype = to;
  for (double& x : t.at) x = round_to(to, x);
  return t;
}

void add(Cases& all, const json& c, size_t number) {
  DType dtype = *parse_dtype(c.at("dtype").get<std::string>());
  Graph& g = all.graph;
  std::string name = fmt::format("{}", number), op = c.at("op").get<std::string>();
  std::string what = fmt::format("{} {} {}", op, c.at("dtype").get<std::string>(), c.at("attrs").dump());
  auto feed = [&](std::string part, const json& t) {
    Tensor x = retyped(golden::to_tensor(t), dtype);
    Value v = g.feed(name + part, x.type);
    all.given.emplace(name + part, std::move(x));
    return v;
  };
  auto expect = [&](std::string part, Value v, const json& t, double terms) {
    g.set_state(name + part, v);
    std::string in = c.at("inputs").dump();
    all.expected[name + part] = {what + " " + part + " of " + in.substr(0, 300), golden::to_tensor(t),
                                 cancelling.contains(op) ? terms : 0};
  };
  Values in;
  for (const json& t : c.at("inputs")) in.push_back(feed(fmt::format("x{}", in.size()), t));
  const OpDef& record = *find_op(op);
  Values out = g.add(record, in, golden::to_attrs(c.at("attrs")).over(record.attrs));
  expect("y", out[0], c.at("results")[0], 1);
  if (c.at("cotangents")[0].is_null()) return;
  Values wrt;
  std::vector<size_t> numbers;
  for (size_t k = 0; k < in.size(); ++k) {
    if (c.at("gradients")[k].is_null()) continue;
    wrt.push_back(in[k]);
    numbers.push_back(k);
  }
  double largest = 0;
  for (double x : golden::to_tensor(c.at("cotangents")[0]).at) largest = std::max(largest, std::abs(x));
  Values d = gradients({out[0]}, {feed("d", c.at("cotangents")[0])}, wrt);
  for (size_t k = 0; k < d.size(); ++k)
    expect(fmt::format("dx{}", numbers[k]), d[k] ? d[k] : g.full(wrt[k].dtype(), 0, wrt[k].shape()),
           c.at("gradients")[numbers[k]], largest);
}

/// `compiles`: for a device that compiles each kernel for long. In two bytes that is spared for kernels that differ
/// from those of f32 in how they load and store.
Cases cases_of(const std::string& dtype, bool compiles) {
  static const json all = golden::read("edges.json");
  static const std::set<std::string> own_text = {"elementwise", "losses"};
  Cases chosen;
  size_t number = 0;
  for (const json& c : all)
    if (c.at("dtype") == dtype && (!compiles || dtype == "f32" || own_text.contains(c.at("family"))))
      add(chosen, c, number++);
  return chosen;
}

/// Half a unit in the last place of the format, and what f32 leaves of a formula.
double tolerance(DType t) { return 4e-6 + (t == DType::f16 ? 0x1p-11 : t == DType::bf16 ? 0x1p-8 : 0); }

/// The smallest difference that counts: devices may flush f32's denormals to zero, also a factor of a logarithm, which
/// is at most 2^7 (the gradient of pow).
double smallest(DType t) { return t == DType::f16 ? 0x1p-24 : 0x1p-119; }

bool agrees(DType t, double got, double want, double terms) {
  double rounded = round_to(t, want);
  if (std::isnan(want) || std::isinf(rounded) || !std::isfinite(got))
    return got == rounded || (std::isnan(got) && std::isnan(want));
  return std::abs(got - want) <= tolerance(t) * std::abs(want) + 1e-6 * terms + smallest(t);
}

/// The same numbers, but denormals of the format's exponent range as zeros: devices may flush them.
std::map<std::string, Tensor> flushed(std::map<std::string, Tensor> given) {
  for (auto& [name, t] : given)
    for (double& x : t.at)
      if (t.type.dtype != DType::f16 && std::abs(x) < 0x1p-126) x = std::copysign(0.0, x);
  return given;
}

class Edges : public testing::TestWithParam<std::string> {};

TEST_P(Edges, match_pytorch_on_every_device) {
  for (const Device& device : test::devices_and_reference()) {
    Cases all = cases_of(GetParam(), device.kind == DeviceKind::software && device.plugin != "reference");
    std::map<std::string, Tensor> got = test::run_on(device, all.graph, all.given), of_zeros;
    Values results;
    for (const auto& [name, e] : all.expected) results.push_back(all.graph.latest(name));
    std::vector<Tensor> values = evaluate(all.graph, flushed(all.given), results);
    for (const auto& [name, e] : all.expected) of_zeros.emplace(name, std::move(values[of_zeros.size()]));
    for (const auto& [name, e] : all.expected) {
      const Tensor& y = got.at(name);
      ASSERT_EQ(y.at.size(), e.want.at.size()) << e.what;
      size_t wrong = 0, first = 0;
      for (size_t i = y.at.size(); i-- > 0;)
        if (!agrees(y.type.dtype, y.at[i], e.want.at[i], e.terms) &&
            !agrees(y.type.dtype, y.at[i], of_zeros.at(name).at[i], e.terms))
          ++wrong, first = i;
      if (wrong)
        ADD_FAILURE() << device.id << ": " << e.what << ": " << wrong << " of " << y.at.size() << " differ, first at "
                      << first << ": " << y.at[first] << ", expected " << e.want.at[first];
    }
  }
}

/// The record's rule, at positions of the result that read nothing but padding, and in a large weight gradient.
TEST(ConvOutside, counts_as_zeros_that_take_part) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  Graph g;
  Tensor x({DType::f32, {1, 1, 2, 2}}), d({DType::f32, {1, 1, 4, 4}});
  Tensor many({DType::f32, {8, 16, 32, 32}});
  for (Tensor* t : {&x, &many}) std::fill(t->at.begin(), t->at.end(), 1.0);
  d.at[0] = inf;
  Tensor broken = many;
  std::fill(broken.at.begin(), broken.at.end(), inf);
  g.set_state("ring", conv2d_dw(g.feed("x", x.type), g.feed("d", d.type), {1, 1, 1, 1}, {.padding = {1, 1}}));
  g.set_state("all",
              conv2d_dw(g.feed("many", many.type), g.feed("broken", broken.type), {16, 16, 3, 3}, {.padding = {1, 1}}));
  std::map<std::string, Tensor> given = {{"x", x}, {"d", d}, {"many", many}, {"broken", broken}};
  for (const Device& device : test::devices_and_reference()) {
    std::map<std::string, Tensor> got = test::run_on(device, g, given);
    EXPECT_TRUE(std::isnan(got.at("ring").at[0])) << device.id << ": an inf that only padding meets";
    for (size_t i = 0; i < got.at("all").at.size(); ++i)
      EXPECT_EQ(std::isnan(got.at("all").at[i]), i % 9 != 4) << device.id << ": the middle tap reads no padding";
  }
}

/// The same of a gradient to the images with strides: the zeros between the cotangent's pixels take part too.
TEST(ConvOutside, zeros_between_strides_take_part) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (int64_t kernel : {3, 1}) {
    Graph g;
    Tensor d({DType::f32, {1, 12, 3, 3}}), w({DType::f32, {12, 20, kernel, kernel}});
    for (Tensor* t : {&d, &w}) std::fill(t->at.begin(), t->at.end(), 1.0);
    w.at[0] = inf;  // filter 0, channel 0, tap (0, 0), which reads the pixels of even lines and columns
    int64_t size = kernel + 5;
    g.set_state("dx", conv2d_dx(g.feed("d", d.type), g.feed("w", w.type), {1, 20, size, size}, {.stride = {2, 2}}));
    for (const Device& device : test::devices_and_reference()) {
      std::vector<double> dx = test::run_on(device, g, {{"d", d}, {"w", w}}).at("dx").at;
      for (int64_t i = 0; i < 20 * size * size; ++i) {
        int64_t channel = i / (size * size), y = i / size % size, x = i % size;
        bool read = y % 2 == 0 && x % 2 == 0 && y < 6 && x < 6;
        double got = dx[static_cast<size_t>(i)];
        EXPECT_TRUE(channel > 0 ? std::isfinite(got)
                    : read      ? got == inf
                                : std::isnan(got))
            << device.id << ": kernel " << kernel << ", channel " << channel << ", " << y << ", " << x << ": " << got;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Edges, testing::Values("f32", "f16", "bf16"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tutti
