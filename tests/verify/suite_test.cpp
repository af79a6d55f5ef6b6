// The judges judged: wrong results, made from a device's right ones, must fail.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <set>

#include "core/base/status.h"
#include "core/os/environment.h"
#include "core/runtime/selector.h"
#include "tests/support/device_run.h"
#include "verify/parity/compare.h"
#include "verify/parity/expected.h"
#include "verify/parity/suite.h"

namespace tutti::parity {
namespace {

/// Rendered sessions look for writes outside of their memory.
[[maybe_unused]] const bool guarded = (os::set_variable("TUTTI_SENTINELS", "1", false), true);

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

using Tamper = decltype(SuiteOptions::tamper);

/// The device whose results are spoilt; the reference where there is no other.
Device first_device() {
  std::vector<Device> devices = test::devices_under_test();
  return devices.empty() ? select_device("reference:0") : devices[0];
}

/// Its report on one case, after `tamper`.
CaseResult judged(const std::string& text, Tamper tamper = {}) {
  return run({first_device()}, {parse_case(text)}, {.seed = 3, .tamper = std::move(tamper)}).devices[0].cases[0];
}

void expect_caught(const std::string& text, const Tamper& tamper) {
  EXPECT_EQ(judged(text).outcome, Outcome::pass) << text << ": " << judged(text).why;
  CaseResult wrong = judged(text, tamper);
  EXPECT_EQ(wrong.outcome, Outcome::fail) << text;
  EXPECT_FALSE(wrong.why.empty());
}

/// Every gradient 1 % too large.
TEST(Mutation, ScaledGradient) {
  for (const char* text : {"matmul:0:all:f32", "matmul:7:d1:f32", "conv2d:0:all:f32", "sigmoid:0:all:f32",
                           "sum:0:all:f32", "softmax:0:all:f32", "adam:0:all:f32", "mul:0:d0:f16"})
    expect_caught(text, [](const CaseId&, int, std::vector<Tensor>& results, const auto&) {
      bool tampered = false;
      for (size_t k = 1; k < results.size(); ++k)  // y0 stays as it is
        for (double& x : results[k].at) {
          x *= results[k].type.dtype == DType::f16 ? 1.1 : 1.01;
          tampered = true;
        }
      ASSERT_TRUE(tampered);
    });
}

/// The last row was never written: it holds zeros, or what was there before.
TEST(Mutation, MissedRow) {
  for (double left : {0.0, nan, 7.5})
    for (const char* text : {"matmul:0:forward:f32", "matmul:7:forward:f32", "add:0:forward:f32", "add:5:forward:f32",
                             "softmax:0:forward:f32", "transpose:0:forward:f32", "add:4:forward:f32"})
      expect_caught(text, [&](const CaseId&, int, std::vector<Tensor>& results, const auto&) {
        Tensor& y = results[0];
        size_t row = static_cast<size_t>(y.shape().back());
        ASSERT_GE(y.at.size(), row);
        for (size_t i = y.at.size() - row; i < y.at.size(); ++i) y.at[i] = left;
      });
}

/// The second run gives the first run's results again.
TEST(Mutation, StaleBuffer) {
  for (const char* text : {"add:0:forward:f32", "matmul:0:all:f32", "sum:0:forward:f32", "relu:0:all:f32",
                           "gather:0:forward:f32", "argmax:0:forward:f32", "sgd:0:forward:f32"})
    expect_caught(text, [](const CaseId&, int run, std::vector<Tensor>& results, const std::vector<Tensor>& before) {
      if (run == 1) results = before;
    });
}

/// A sum that leaves out its last term.
TEST(Mutation, ShortReduction) {
  for (const OpDef* op : {find_op("sum"), find_op("mean")}) {
    bool tried = false;
    for (size_t s = 0; s < op->samples.size(); ++s) {
      CaseId id{op, s};
      Graph g = graph_of(id);
      Tensor x = inputs_of(id, g, 3).at("x0");
      const TensorType& y = g.info(g.states()[0].after).type;
      if (num_elements(y.shape) != 1 || x.at.size() < 2 || !is_float(y.dtype)) continue;  // one sum over everything
      tried = true;
      expect_caught(id.text(), [&](const CaseId&, int run, std::vector<Tensor>& results, const auto&) {
        if (run == 0) results[0].at[0] -= x.at.back() / (op->name == "mean" ? static_cast<double>(x.at.size()) : 1);
      });
    }
    EXPECT_TRUE(tried) << op->name;
  }
  // And one term of a product: y = a b without the last k.
  CaseId id = parse_case("matmul:7:forward:f32");
  Tensors in = inputs_of(id, graph_of(id), 3);
  const Tensor &a = in.at("x0"), &b = in.at("x1");
  expect_caught(id.text(), [&](const CaseId&, int run, std::vector<Tensor>& results, const auto&) {
    size_t k = static_cast<size_t>(a.shape()[1]), n = static_cast<size_t>(b.shape()[1]);
    for (size_t i = 0; run == 0 && i < results[0].at.size(); ++i)
      results[0].at[i] -= a.at[i / n * k + k - 1] * b.at[(k - 1) * n + i % n];
  });
}

/// Every op's quick cases with what a device gave spoilt: for each op, the number of cases in which something was
/// changed and the number of those that failed.
using Counts = std::map<std::string, std::pair<int, int>>;
Counts spoilt(const std::function<bool(const CaseId&, int run, std::vector<Tensor>&, const std::vector<Tensor>&)>& by) {
  std::vector<CaseId> cases;
  for (const OpDef* op : all_ops())
    for (const CaseId& id : cases_of(*op, Extent::quick)) cases.push_back(id);
  std::set<std::string> changed;
  Report report = run({first_device()}, cases,
                      {.seed = 3, .tamper = [&](const CaseId& id, int run, auto& results, const auto& before) {
                         if (by(id, run, results, before)) changed.insert(id.text());
                       }});
  Counts counts;
  for (const CaseResult& c : report.devices[0].cases) {
    if (!changed.contains(c.id.text())) continue;
    ++counts[c.id.op->name].first;
    counts[c.id.op->name].second += c.outcome == Outcome::fail;
    if (c.outcome != Outcome::fail)
      std::cerr << c.id.text() << " is spoilt and passes, share " << c.share << ", error " << c.error << "\n";
  }
  return counts;
}

void expect_all_caught(const Counts& counts, size_t ops) {
  EXPECT_GE(counts.size(), ops);
  for (const auto& [op, n] : counts) EXPECT_EQ(n.first, n.second) << op;
}

/// The gradients of all ops, 1 % too large; 10 % those of the f16 scales of quantised weights, whose bounds are wider.
TEST(Mutation, ScaledGradientOfEveryOp) {
  expect_all_caught(spoilt([](const CaseId& id, int, std::vector<Tensor>& results, const auto&) {
                      bool changed = false;
                      for (size_t k = id.op->results.size(); k < results.size(); ++k)
                        for (double& x : results[k].at) {
                          changed |= x != 0;
                          x *= results[k].type.dtype == DType::f16 ? 1.1 : 1.01;
                        }
                      return changed;
                    }),
                    all_ops().size() / 2);
}

/// The last element of every result was not written.
TEST(Mutation, MissedElementOfEveryOp) {
  expect_all_caught(spoilt([](const CaseId&, int, std::vector<Tensor>& results, const auto&) {
                      bool changed = false;
                      for (Tensor& y : results)
                        if (!y.at.empty()) {
                          changed |= y.at.back() != 0;
                          y.at.back() = 0;
                        }
                      return changed;
                    }),
                    all_ops().size() * 9 / 10);
}

/// The second run's results are the first's.
TEST(Mutation, StaleBufferOfEveryOp) {
  expect_all_caught(spoilt([](const CaseId&, int run, std::vector<Tensor>& results, const std::vector<Tensor>& before) {
                      bool changed = false;
                      for (size_t k = 0; run == 1 && k < results.size(); ++k) {
                        changed |= results[k].at != before[k].at;
                        results[k].at = before[k].at;
                      }
                      return changed;
                    }),
                    all_ops().size() * 9 / 10);
}

/// The state of an optimizer that is not updated in place is seen in the next step.
TEST(Mutation, StateLeftBehind) {
  for (const char* text : {"adam:0:forward.state:f32", "adamw:0:forward.state:f32", "sgd_momentum:0:forward.state:f32"})
    expect_caught(text, [](const CaseId&, int run, std::vector<Tensor>& results, const std::vector<Tensor>& before) {
      if (run == 2) results.back() = before.back();
    });
}

/// The program of the larger batch, which runs second and fourth, has computed the recorded batch alone.
TEST(Mutation, OtherBatch) {
  for (const char* text : {"matmul:0:all.batch:f32", "softmax:0:all.batch:f32"})
    expect_caught(text, [](const CaseId&, int run, std::vector<Tensor>& results, const auto&) {
      if (run % 2) std::fill(results[0].at.end() - 3, results[0].at.end(), 0.0);
    });
}

Tensor vector(std::vector<double> at, DType t = DType::f32) {
  Tensor v({t, {static_cast<int64_t>(at.size())}});
  v.at = std::move(at);
  return v;
}

TEST(Compare, NanNeverPasses) {
  Bound loose{10, 10};
  for (const Bound& b : {loose, Bound{}}) {
    EXPECT_FALSE(compare(vector({1, nan}), vector({1, 2}), b).ok);
    EXPECT_FALSE(compare(vector({1, 2}), vector({1, nan}), b).ok);
    EXPECT_FALSE(compare(vector({1, inf}), vector({1, 2}), b).ok);
    EXPECT_FALSE(compare(vector({1, inf}), vector({1, -inf}), b).ok);
    EXPECT_TRUE(compare(vector({1, nan, inf}), vector({1, nan, inf}), b).ok);
    EXPECT_FALSE(compare(vector({1, nan}), vector({1, 2}), b, [] { return nan; }).ok);
    EXPECT_FALSE(compare(vector({1, nan}), vector({1, 2}), b, [] { return inf; }).ok);
  }
  EXPECT_TRUE(std::isnan(norm_error(vector({nan}), vector({1}))));
}

TEST(Compare, TypesMustBeTheSame) {
  EXPECT_FALSE(compare(vector({1}), vector({1, 2}), {1, 1}).ok);
  EXPECT_FALSE(compare(vector({1}, DType::f16), vector({1}), {1, 1}).ok);
}

TEST(Compare, IntegersMustBeEqual) {
  Graph g;
  const OpDef& add = *find_op("add");
  EXPECT_TRUE(bound_of(add, g, DType::i32, false).equal());
  EXPECT_FALSE(compare(vector({1, 2}, DType::i32), vector({1, 3}, DType::i32), {}).ok);
  EXPECT_FALSE(bound_of(add, g, DType::f32, false).equal());
  EXPECT_TRUE(bound_of(*find_op("random_bits"), g, DType::u32, false).equal());
}

TEST(Compare, NormIsHeldTighterThanElements) {
  std::vector<double> want(100, 1.0), shifted(100, 1.0), one(100, 1.0);
  for (double& x : shifted) x += 1.5e-3;  // each within 1e-3 (|1| + 1), all of them not
  one[5] += 1.5e-3;
  EXPECT_TRUE(compare(vector(one), vector(want), {1e-3, 0}).ok);
  EXPECT_FALSE(compare(vector(shifted), vector(want), {1e-3, 0}).ok);
}

TEST(Cases, TextIsReadBack) {
  for (const OpDef* op : all_ops())
    for (const CaseId& id : cases_of(*op, Extent::full)) EXPECT_EQ(parse_case(id.text()), id);
  for (const char* bad :
       {"", "add", "add:0:forward", "nop:0:forward:f32", "add:99:forward:f32", "add:-1:forward:f32", "add:0:d9:f32",
        "add:0:forward:f31", "add:0:forward:i32", "add:4:forward:f16", "add:0:all:f32:"})
    EXPECT_THROW(parse_case(bad), Error) << bad;
}

TEST(Cases, EveryOpHasForwardAndGradients) {
  for (const OpDef* op : all_ops()) {
    std::vector<CaseId> quick = cases_of(*op, Extent::quick);
    EXPECT_FALSE(quick.empty()) << op->name;
    EXPECT_LE(quick.size(), cases_of(*op, Extent::normal).size());
    EXPECT_LE(cases_of(*op, Extent::normal).size(), cases_of(*op, Extent::full).size());
  }
}

/// The same mathematics through transposed and sliced inputs.
TEST(Cases, ViewsGiveTheSame) {
  for (const char* text : {"matmul:0:forward", "relu:2:all", "add:1:all"}) {
    CaseId plain = parse_case(std::string(text) + ":f32"), views = parse_case(std::string(text) + ".views:f32");
    Graph a = graph_of(plain), b = graph_of(views);
    std::vector<Tensor> x = truth_of(a, inputs_of(plain, a, 5)), y = truth_of(b, inputs_of(views, b, 5));
    ASSERT_EQ(x.size(), y.size());
    for (size_t k = 0; k < x.size(); ++k) EXPECT_EQ(x[k].at, y[k].at) << text;
  }
}

/// What the variants of a sample are.
TEST(Cases, VariantsAreWhatTheySay) {
  auto shape = [](const char* text) {
    CaseId id = parse_case(text);
    Graph g = graph_of(id);
    return inputs_of(id, g, 1).at("x0").shape();
  };
  Shape recorded = find_op("matmul")->samples[0].shapes[0];
  EXPECT_EQ(shape("matmul:0:all.batch:f32"), (Shape{recorded[0] + 3, recorded[1]}));
  EXPECT_EQ(shape("matmul:0:all.empty:f32"), (Shape{0, recorded[1]}));
  EXPECT_EQ(shape("matmul:0:all.one:f32"), (Shape{1, 1}));
  EXPECT_GT(num_elements(shape("matmul:0:all.large:f32")), 1 << 16);
  EXPECT_GT(shape("matmul:0:all.wide:f32")[1], 1 << 12);
  EXPECT_EQ(shape("add:0:all.broadcast:f32"), (Shape{3, 1, 5}));
  CaseId state = parse_case("adam:0:forward.state:f32");
  Graph g = graph_of(state);
  EXPECT_EQ(std::count_if(g.states().begin(), g.states().end(), [](const State& s) { return s.before != no_id; }), 3);
}

/// Every op has a tensor above 2^16 elements, another batch size and an empty tensor somewhere.
TEST(Cases, EveryOpMeetsLargeEmptyAndOtherBatches) {
  for (const OpDef* op : all_ops()) {
    std::set<std::string> seen;
    for (const CaseId& id : cases_of(*op, Extent::normal)) {
      if (!id.variant.empty()) seen.insert(id.variant);
      if (!id.variant.empty()) continue;
      Graph g = graph_of(id);
      for (const ValueInfo& v : g.values()) {
        if (num_elements(v.type.shape) == 0) seen.insert("empty");
        if (num_elements(v.type.shape) > 1 << 16) seen.insert("large");
      }
    }
    std::set<std::string> needed = {"large", "empty", "batch"};
    if (op->name == "random_bits") needed.erase("batch");           // its seed always has two elements
    if (op->name.starts_with("batch_norm")) needed.erase("empty");  // the statistics of nothing are refused
    for (const std::string& n : needed) EXPECT_TRUE(seen.contains(n)) << op->name << " " << n;
  }
}

TEST(Expected, PatternsFit) {
  EXPECT_TRUE((Expected{"cast:2:*", ""}.matches("cast:2:all:f32")));
  EXPECT_TRUE((Expected{"*:f16", ""}.matches("add:0:all.large:f16")));
  EXPECT_TRUE((Expected{"add:0:all:f32", ""}.matches("add:0:all:f32")));
  EXPECT_TRUE((Expected{"*:d?:*", ""}.matches("add:0:d1:f32")));
  EXPECT_FALSE((Expected{"cast:2:*", ""}.matches("cast:20:all:f32")));
  EXPECT_FALSE((Expected{"cast", ""}.matches("cast:2:all:f32")));
  EXPECT_FALSE((Expected{"*:f16", ""}.matches("add:0:all:f32")));
}

/// The list of a manifest with that text for it.
std::vector<Expected> listed(const std::string& list) {
  std::filesystem::path path = std::filesystem::path(testing::TempDir()) / fmt::format("expected-{}.json", getpid());
  std::ofstream(path) << R"({"expected_failures": )" << list << "}";
  std::shared_ptr<void> removed(nullptr, [&](void*) { std::filesystem::remove(path); });
  return expected_failures(path);
}

TEST(Expected, EntriesAreStrictUnlessTheySayOtherwise) {
  std::vector<Expected> list =
      listed(R"([{"case": "add:*", "reason": "a"}, {"case": "b", "reason": "b", "may_pass": true},
                                          {"case": "c", "reason": "c", "may_pass": false}])");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].pattern, "add:*");
  EXPECT_EQ(list[1].reason, "b");
  EXPECT_EQ((std::vector<bool>{list[0].may_pass, list[1].may_pass, list[2].may_pass}),
            (std::vector<bool>{false, true, false}));
}

TEST(Expected, WrongEntriesAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"case": "a", "reason": "b"})", "must be a list, not object"},
      {R"([{"case": "a", "reason": "b"}, 3])", "entry 1: must be an object, not number"},
      {R"([{"case": 3, "reason": "b"}])", "entry 0: key \"case\" must be a non-empty string, got number"},
      {R"([{"case": "a", "reason": ""}])", "entry 0: key \"reason\" must be a non-empty string, got \"\""},
      {R"([{"reason": "b"}])", "entry 0: key \"case\" is missing"},
      {R"([{"case": "a"}])", "entry 0: key \"reason\" is missing"},
      {R"([{"case": "a", "reason": "b", "may_pass": "yes"}])",
       "entry 0: key \"may_pass\" must be true or false, not string"},
      {R"([{"case": "a", "reason": "b", "may-pass": true}])", "entry 0: key \"may-pass\" is unknown"},
      {R"([{"case": "a", "reason": "b", "\u001b[2J": true}])", "key \"\\u001b[2J\" is unknown"},
  };
  for (const auto& [list, part] : cases) try {
      listed(list);
      ADD_FAILURE() << list << " was taken";
    } catch (const Error& e) {
      EXPECT_EQ(e.code, Code::invalid);
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("key \"expected_failures\""), std::string::npos) << e.what();
      EXPECT_NE(e.remedy.find("may_pass"), std::string::npos);
    }
}

TEST(Expected, PassesAreFailuresOrTolerated) {
  Device device = first_device();
  auto settled = [&](Outcome outcome, bool may_pass) {
    CaseResult r{.id = parse_case("add:0:forward:f32"), .outcome = outcome, .why = "x"};
    settle(r, device, {{"add:*", "made up", may_pass}, {"*", "later entries do not count", !may_pass}});
    return r.outcome;
  };
  for (Outcome o : {Outcome::fail, Outcome::unsupported})
    for (bool may_pass : {false, true}) EXPECT_EQ(settled(o, may_pass), Outcome::expected);
  EXPECT_EQ(settled(Outcome::pass, false), Outcome::fail);
  EXPECT_EQ(settled(Outcome::pass, true), Outcome::pass);
  for (bool may_pass : {false, true}) EXPECT_EQ(settled(Outcome::no_room, may_pass), Outcome::no_room);
}

TEST(Report, PageAndTableHoldTheFailure) {
  Report report = run({select_device("reference:0")}, {parse_case("add:0:forward:f32"), parse_case("relu:0:all:f32")},
                      {.seed = 9, .tamper = [](const CaseId& id, int, std::vector<Tensor>& results, const auto&) {
                         if (id.op->name == "relu") results[0].at[0] = nan;
                       }});
  EXPECT_EQ(report.count(Outcome::pass), 1u);
  EXPECT_EQ(report.count(Outcome::fail), 1u);
  EXPECT_NE(table(report).find("FAIL 1/1"), std::string::npos);
  std::string page = html(report);
  EXPECT_NE(page.find("tutti parity --device reference:0 --case relu:0:all:f32 --seed 9"), std::string::npos);
  for (const char* outside : {"http://", "https://", "<script", "<link", "src="})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
}

}  // namespace
}  // namespace tutti::parity
