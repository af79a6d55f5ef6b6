// An elementwise op that the engine has never heard of: one record in a program of its own runs on every device,
// forward and gradient, and is judged like the ops of graph/ops/.
#include <gtest/gtest.h>

#include <cstdlib>
#include "core/os/environment.h"
#include "core/runtime/selector.h"
#include "graph/autodiff/autodiff.h"
#include "graph/ops.h"
#include "tests/support/device_run.h"
#include "tests/support/error_of.h"
#include "verify/parity/suite.h"

namespace tutti {
namespace {

/// Rendered sessions look for writes outside of their memory.
[[maybe_unused]] const bool guarded = (os::set_variable("TUTTI_SENTINELS", "1", false), true);

/// All that a user writes.
const OpDef soft_clip_op{
    .name = "soft_clip",
    .doc = "y = limit tanh(x / limit) + slope x scale",
    .inputs = {"x", "scale"},
    .attrs = {{"limit", Reals{2.0}}, {"slope", Reals{0.1}}},
    .expr = [](In x,
               const Attrs& a) { return Exs{a.f("limit") * tanh(x[0] / a.f("limit")) + a.f("slope") * x[0] * x[1]}; },
    .samples = {{.shapes = {{3, 5}, {5}}, .low = -4, .high = 4},
                {.shapes = {{2, 1, 7}, {3, 1}}, .attrs = {{"limit", Reals{0.7}}}},
                {.shapes = {{65537}, {}}},
                {.shapes = {{0, 3}, {3}}}}};

TEST(OutsideOp, RunsOnEveryDevice) {
  ASSERT_EQ(find_op("soft_clip"), nullptr);
  std::vector<parity::CaseId> cases = parity::cases_of(soft_clip_op, parity::Extent::quick);
  std::vector<parity::CaseId> more = parity::cases_of(soft_clip_op, parity::Extent::normal);
  ASSERT_EQ(cases.size(), 4u);  // two samples, forward and both gradients
  ASSERT_GT(more.size(), 25u);
  for (const parity::CaseId& id : more)  // and of the many: large, empty, another batch, each gradient alone in f16
    if (id.variant == "large" || id.variant == "empty" || id.variant == "batch" || id.dtype == DType::f16)
      cases.push_back(id);
  parity::Report report = parity::run(test::devices_and_reference(), cases, {.seed = 12});
  for (const parity::DeviceResult& d : report.devices) {
    EXPECT_EQ(d.cases.size(), cases.size());
    for (const parity::CaseResult& c : d.cases)
      EXPECT_EQ(c.outcome, parity::Outcome::pass) << d.device.id << " " << c.id.text() << ": " << c.why;
  }
}

/// A wrong gradient of it is seen on every device.
TEST(OutsideOp, WrongGradientIsCaught) {
  parity::CaseId id{&soft_clip_op, 0, "all"};
  parity::Report report =
      parity::run(test::devices_and_reference(), {id},
                  {.seed = 12, .tamper = [](const parity::CaseId&, int, auto& results, const auto&) {
                     for (double& x : results[1].at) x *= 1.01;
                   }});
  for (const parity::DeviceResult& d : report.devices) EXPECT_EQ(d.count(parity::Outcome::fail), 1u) << d.device.id;
}

/// In a graph among the engine's ops, as a model uses it.
TEST(OutsideOp, TrainsAmongOthers) {
  for (const Device& device : test::devices_and_reference()) {
    Graph g;
    Value x = g.feed("x", {DType::f32, {8, 16}}), w = g.state("w", {DType::f32, {16, 4}});
    Value loss = mean(call(soft_clip_op, {matmul(x, w), w.like(1)}));
    g.set_state("w", w - gradients(loss, {w})[0] * w.like(0.1));
    g.set_state("loss", loss);
    std::map<std::string, Tensor> in = {{"x", Tensor({DType::f32, {8, 16}})}, {"w", Tensor({DType::f32, {16, 4}})}};
    for (size_t i = 0; i < in.at("x").at.size(); ++i) in.at("x").at[i] = static_cast<double>(i % 7) / 8 - 0.25;
    for (size_t i = 0; i < in.at("w").at.size(); ++i) in.at("w").at[i] = static_cast<double>(i % 5) / 4 - 0.5;
    std::vector<Tensor> truth = evaluate(g, in, {g.latest("w"), g.latest("loss")});
    std::map<std::string, Tensor> got = test::run_on(device, g, in);
    EXPECT_LT(test::relative_error(got.at("w"), truth[0]), 1e-5) << device.id;
    EXPECT_LT(test::relative_error(got.at("loss"), truth[1]), 1e-5) << device.id;
  }
}

/// Made of others: no device has a kernel of the name.
const OpDef unit_op{.name = "unit", .inputs = {"x"}, .decompose = [](const Call& c) {
                      return Values{c.in[0] / sqrt(mean(c.in[0] * c.in[0]))};
                    }};

/// Without an expression or a decomposition: loops on the host, which the reference device runs.
const OpDef ranks_op{.name = "ranks",
                     .inputs = {"x"},
                     .attrs = {{"from", Ints{0}}, {"by", Reals{1}}, {"note", std::string()}},
                     .infer = [](std::span<const TensorType> in, const Attrs&) { return Types{in[0]}; },
                     .reference =
                         [](std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
                           if (a.text("note") == "fail") throw invalid("ranks: told to fail");
                           for (double& y : out[0].at) y = static_cast<double>(a.i("from"));
                           for (size_t i = 0; i < in[0].at.size(); ++i)
                             for (double other : in[0].at) out[0].at[i] += other < in[0].at[i] ? a.f("by") : 0;
                         }};

TEST(OutsideOp, MadeOfOthers) {
  for (const Device& device : test::devices_and_reference()) {
    Graph g;
    Value x = g.feed("x", {DType::f32, {4}}), y = call(unit_op, {x});
    g.set_state("y", y);
    g.set_state("d", gradients(sum(y * y * y), {x})[0]);
    Tensor in({DType::f32, {4}});
    in.at = {1, -2, 0.5, 3};
    std::vector<Tensor> truth = evaluate(g, {{"x", in}}, {g.latest("y"), g.latest("d")});
    std::map<std::string, Tensor> got = test::run_on(device, g, {{"x", in}});
    EXPECT_LT(test::relative_error(got.at("y"), truth[0]), 1e-5) << device.id;
    EXPECT_LT(test::relative_error(got.at("d"), truth[1]), 1e-5) << device.id;
  }
}

TEST(OutsideOp, AReferenceAloneRunsOnTheReference) {
  Tensor in({DType::f32, {4}});
  in.at = {1, -2, 0.5, 3};
  auto run = [&](const Device& device, const std::string& note) {
    Graph g;
    Value x = g.feed("x", in.type);
    Value y = call(ranks_op, {x + 1}, {{"from", Ints{10}}, {"by", Reals{0.5}}, {"note", note}});
    g.set_state("y", y * 2);
    return test::run_on(device, g, {{"x", in}}).at("y").at;
  };
  for (const Device& device : test::devices_and_reference()) {
    if (device.plugin == "reference") {
      EXPECT_EQ(run(device, "ranks"), (std::vector<double>{22, 20, 21, 23}));
      EXPECT_NE(test::error_of([&] { run(device, "fail"); }).find("told to fail"), std::string::npos);
      continue;
    }
    std::string text = test::error_of([&] { run(device, ""); }, Code::declined);
    EXPECT_NE(text.find("have no decomposition"), std::string::npos) << text;
    EXPECT_NE(text.find("ranks{"), std::string::npos) << text;
    EXPECT_NE(text.find("no scalar expression"), std::string::npos) << text;
  }
}

TEST(OutsideOp, TwoOfOneNameAreRefused) {
  static const OpDef other{.name = "ranks", .inputs = {"x"}, .infer = ranks_op.infer, .reference = ranks_op.reference};
  Device device = test::devices_and_reference().back();
  auto run = [&](const OpDef& op) {
    Graph g;
    g.set_state("y", call(op, {g.feed("x", {DType::f32, {1}})}));
    test::run_on(device, g, {{"x", Tensor({DType::f32, {1}})}});
  };
  run(ranks_op);
  EXPECT_NE(test::error_of([&] { run(other); }).find("two ops have the name 'ranks'"), std::string::npos);
}

}  // namespace
}  // namespace tutti
