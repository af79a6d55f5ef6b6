// The benchmark's counts, statistics and turns; its forms. What needs devices is in tests/cli/bench_test.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <new>

#include "bench/measure.h"
#include "bench/page_axes.h"
#include "graph/lower/group.h"
#include "graph/lower/lower.h"
#include "graph/ops.h"

namespace tutti::bench {
namespace {

CostEstimate of(const OpCase& op, DType t = DType::f32) { return estimate_cost(Lowered(build(op, t)).program()); }

TEST(BenchEffort, Products) {
  for (const char* op : {"matmul", "matmul_ta", "matmul_tb"}) {
    CostEstimate e = of({op, {2, 3, 4}});
    EXPECT_EQ(e.flops, 2 * 2 * 3 * 4) << op;
    EXPECT_EQ(e.bytes, 4 * (2 * 4 + 4 * 3 + 2 * 3)) << op;
  }
  EXPECT_EQ(of({"matmul", {2, 3, 4}}, DType::bf16).bytes, 2 * (2 * 4 + 4 * 3 + 2 * 3));
}

TEST(BenchEffort, BatchedProduct) {
  Graph g;
  g.set_state("y", matmul(g.state("a", {DType::f32, {5, 1, 2, 4}}), g.state("b", {DType::f32, {3, 4, 6}})));
  EXPECT_EQ(estimate_cost(Lowered(g).program()).flops, 5 * 3 * 2.0 * 2 * 6 * 4);
}

TEST(BenchEffort, ConvolutionsAndTheirGradients) {
  for (const char* op : {"conv2d", "conv2d_dx", "conv2d_dw", "conv2d_nhwc", "conv2d_nhwc_dx", "conv2d_nhwc_dw"}) {
    CostEstimate e = of({op, {2, 3, 5, 5, 4, 3}});  // y is 2 x 4 x 5 x 5
    EXPECT_EQ(e.flops, 2.0 * (2 * 4 * 5 * 5) * (3 * 3 * 3)) << op;
    EXPECT_EQ(e.bytes, 4.0 * (2 * 3 * 5 * 5 + 4 * 3 * 3 * 3 + 2 * 4 * 5 * 5)) << op;
  }
}

TEST(BenchEffort, GroupedConvolution) {
  Graph g;
  Value x = g.state("x", {DType::f32, {1, 6, 4, 4}}), w = g.state("w", {DType::f32, {9, 2, 3, 3}});
  g.set_state("y", conv2d(x, w, {.groups = 3}));  // 1 x 9 x 2 x 2
  EXPECT_EQ(estimate_cost(Lowered(g).program()).flops, 2.0 * (9 * 2 * 2) * (2 * 3 * 3));
}

TEST(BenchEffort, RecurrencesCountTheProductsOfTheirSteps) {
  Graph g;
  auto state = [&](const char* name, Shape shape) { return g.state(name, {DType::f32, std::move(shape)}); };
  Value h = state("h", {3, 5}), w = state("w", {20, 5}), z = state("z", {7, 3, 20});
  Values out = call_all(lstm_recurrence_op, {h, h, w, z}, {});
  g.set_state("z", call_all(lstm_recurrence_grad_op, {h, w, out[2], out[3], out[0], h}, {})[2]);
  EXPECT_EQ(estimate_cost(Lowered(g).program()).flops, 2 * (7 * 3 * 20 * 5 * 2.0));
}

TEST(BenchEffort, WhatOthersMove) {
  EXPECT_EQ(of({"add", {3, 5}}).bytes, 3 * 15 * 4);
  EXPECT_EQ(of({"add", {3, 5}}).flops, 0);
  EXPECT_EQ(of({"sum", {3, 5}}).bytes, (15 + 5) * 4);
  EXPECT_EQ(of({"gather", {1000, 7, 4}}).bytes, 4 * 4 + 2 * (4 * 7 * 4)) << "gather reads what it gives, not all rows";
}

TEST(BenchEffort, InsideAGroupNothingCounts) {
  Graph g;
  Value a = g.state("a", {DType::f32, {8, 8}}), b = g.state("b", {DType::f32, {8, 8}});
  g.set_state("y", exp((a + b) * a));
  EXPECT_EQ(estimate_cost(Lowered(g).program()).bytes, 256 * (3 + 3 + 2)) << "ungrouped";
  Grouped grouped = group(g);
  ASSERT_EQ(grouped.groups.size(), 1u);
  EXPECT_EQ(estimate_cost(Lowered(grouped.graph, grouped.groups).program()).bytes, 256 * 3) << "a, b and y, each once";
}

TEST(BenchEffort, ReshapesMoveNothing) {
  Graph g;
  g.set_state("y", exp(reshape(g.state("x", {DType::f32, {8, 8}}), {64})));
  EXPECT_EQ(estimate_cost(Lowered(g).program()).bytes, 2 * 256);
}

TEST(BenchStatistics, Quartiles) {
  Statistics s = summarize({4, 1, 3, 2});
  EXPECT_EQ(s.count, 4);
  EXPECT_EQ(s.least, 1);
  EXPECT_EQ(s.q1, 1.75);
  EXPECT_EQ(s.median, 2.5);
  EXPECT_EQ(s.q3, 3.25);
  EXPECT_EQ(s.most, 4);
  EXPECT_EQ(summarize({7}).q1, 7);
  EXPECT_EQ(summarize({7}).most, 7);
  EXPECT_EQ(summarize({}).count, 0);
}

/// A lane whose runs take as long as they are told to.
class FakeLane : public Lane {
 public:
  FakeLane(const std::string& id, double seconds, std::string& log, bool peer = false) : seconds_(seconds), log_(log) {
    info_.id = id;
    info_.peer = peer;
  }
  const LaneInfo& info() const override { return info_; }
  std::unique_ptr<Running> open(const Case&, double& first) override {
    if (open_error) throw *open_error;
    if (no_host_memory) throw std::bad_alloc();
    first = 10 * seconds_;
    struct Fake : Running {
      FakeLane& lane;
      explicit Fake(FakeLane& l) : lane(l) {}
      double run(int64_t runs) override {
        if (lane.runs_left >= 0 && lane.runs_left-- == 0) throw Error(Code::device_lost, "gone");
        lane.log_ += lane.info_.id;
        return lane.seconds_ * static_cast<double>(runs);
      }
      void describe(Measurement& m) override { m.cost = {lane.info_.peer ? 0.0 : 1e6, lane.info_.peer ? 0.0 : 1e3}; }
    };
    return std::make_unique<Fake>(*this);
  }
  std::optional<Error> open_error;
  bool no_host_memory = false;
  int runs_left = -1;

 private:
  double seconds_;
  std::string& log_;
  LaneInfo info_;
};

const OpCase any_op{"matmul", {4, 4, 4}};
const Case any_case{.op = &any_op, .model = nullptr};

TEST(BenchMeasure, LanesTakeTurns) {
  std::string log;
  FakeLane a("a", 1e-3, log), b("b", 2e-3, log), c("c", 4e-3, log);
  auto all = measure(any_case, {&a, &b, &c}, {.repetitions = 6, .seconds = 0.6});
  ASSERT_EQ(log.size(), 3 * (2 + 6)) << "two calibrating calls each, then six repetitions";
  for (size_t at = 6; at < log.size(); at += 3) {
    std::string round = log.substr(at, 3);
    std::ranges::sort(round);
    EXPECT_EQ(round, "abc");
  }
  EXPECT_NE(log.substr(6, 3), log.substr(9, 3)) << "another lane begins each round";
  EXPECT_EQ(all[0].runs, 600);
  EXPECT_EQ(all[2].runs, 6 * 25);
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(all[i].seconds.median, 1e-3 * static_cast<double>(1 << i), 1e-12);
  EXPECT_NEAR(all[1].first_seconds, 2e-2, 1e-12);
}

TEST(BenchMeasure, SlowLanesRunLess) {
  std::string log;
  FakeLane slow("s", 0.5, log), crawling("c", 5, log), quick("q", 1e-3, log);
  auto all = measure(any_case, {&slow, &crawling, &quick}, {.repetitions = 10, .seconds = 1});
  EXPECT_EQ(all[0].seconds.count, 2);
  EXPECT_EQ(all[0].runs, 2);
  EXPECT_EQ(all[1].runs, 1) << "longer than four times the time";
  EXPECT_EQ(all[2].seconds.count, 10);
}

TEST(BenchMeasure, OneLanesTroubleIsItsOwn) {
  std::string log;
  FakeLane declines("d", 1, log), full("f", 1, log), host("h", 1, log), dies("x", 1e-3, log), good("g", 1e-3, log);
  declines.open_error = Error(Code::declined, "no such op");
  full.open_error = Error(Code::no_memory, "too large");
  host.no_host_memory = true;
  dies.runs_left = 4;
  auto all = measure(any_case, {&declines, &full, &host, &dies, &good}, {.repetitions = 5, .seconds = 0.1});
  const char* expected[] = {"declined", "out of memory", "out of memory", "failed", "measured"};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(all[i].status, expected[i]);
  EXPECT_EQ(all[0].reason, "no such op");
  EXPECT_EQ(all[3].reason, "gone");
  EXPECT_EQ(all[4].seconds.count, 5);
}

TEST(BenchMeasure, CopiesBySize) {
  Peaks peaks{.products = {}, .copies = {{1e6, 9}, {1e7, 5}, {1e8, 2}}};
  EXPECT_EQ(peaks.copy_rate(10), 9);
  EXPECT_EQ(peaks.copy_rate(1e6), 9);
  EXPECT_EQ(peaks.copy_rate(9e6), 9);
  EXPECT_EQ(peaks.copy_rate(1e7), 5);
  EXPECT_EQ(peaks.copy_rate(1e12), 2);
  EXPECT_EQ(peaks.memory_rate(), 2);
  EXPECT_EQ(peaks.best_rate(), 9);
  EXPECT_EQ(Peaks{}.copy_rate(1), 0);
}

TEST(BenchMeasure, Share) {
  Measurement m{.of = {"op", "matmul", "", "f32"}, .lane = "a", .cost = {1e9, 1e6}};
  m.seconds.median = 0.02;
  Peaks peaks{.products = {{"f32", {1e11, ""}}}, .copies = {{0, 1e9}}};
  relate(m, peaks);  // products alone need 10 ms, memory 1 ms
  EXPECT_EQ(m.bound, "products");
  EXPECT_DOUBLE_EQ(m.share, 0.5);
  peaks.copies = {{0, 2e8}};
  relate(m, peaks);
  EXPECT_EQ(m.bound, "products");
  peaks.copies = {{0, 1e12}, {1e6, 5e7}, {1e7, 1e3}};
  relate(m, peaks);  // memory needs 20 ms
  EXPECT_EQ(m.bound, "memory");
  EXPECT_DOUBLE_EQ(m.share, 1);
  Measurement other = m;
  other.of.precision = "bf16";
  other.share = 0;
  relate(other, peaks);
  EXPECT_EQ(other.share, 0) << "another precision's peak says nothing";
}

TEST(BenchMeasure, PeaksAreTheBestThatWasSeen) {
  Result r;
  r.lanes = {{.id = "a"}, {.id = "b"}};
  for (LaneInfo& lane : r.lanes) lane.peaks = {.products = {{"f32", {1e9, "squares"}}}, .copies = {{1, 1e12}}};
  Measurement m{.of = {"op", "matmul", "2x2x2", "f32"}, .lane = "a", .cost = {1e9, 1e3}};
  m.seconds.least = 0.5;
  m.seconds.median = 1;
  r.measurements = {m};
  relate_all(r);
  EXPECT_EQ(r.lanes[0].peaks.products["f32"].flops_per_second, 2e9);
  EXPECT_EQ(r.lanes[0].peaks.products["f32"].shape, "matmul 2x2x2");
  EXPECT_EQ(r.lanes[1].peaks.products["f32"].flops_per_second, 1e9);
  EXPECT_DOUBLE_EQ(r.measurements[0].share, 0.5);
}

Measurement synthetic(const std::string& lane, double seconds, const std::string& precision = "f32") {
  Measurement m{.of = {"model", "mlp", "4-3, batch 2", precision}, .lane = lane};
  m.seconds = {.count = 3, .least = seconds, .q1 = seconds, .median = seconds, .q3 = seconds, .most = seconds};
  m.runs = 3;
  m.cost = {1e6, 1e5};
  return m;
}

TEST(BenchRatio, OnlyOfOneCaseInOnePrecision) {
  Measurement a = synthetic("onednn:0", 1), b = synthetic("torch:cpu", 2);
  EXPECT_EQ(ratio(a, b), 0.5);
  auto refused = [](const Measurement& x, const Measurement& y, const std::string& part) {
    try {
      ratio(x, y);
      ADD_FAILURE() << "compared";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    }
  };
  refused(a, synthetic("torch:cpu", 2, "bf16"), "the precisions differ");
  refused(synthetic("cuda:0", 1, "tf32"), b, "the precisions differ");
  Measurement other = b;
  other.of.detail = "4-3, batch 4";
  refused(a, other, "they are different cases");
  other = b;
  other.status = "declined";
  refused(a, other, "declined");
}

Result some_result() {
  Result r{.date = "2026-01-02T03:04:05Z", .version = "1", .repetitions = 3, .seconds_per_case = 1};
  r.machine = {"A <CPU> & \"more\"", "A system", 2, 1 << 30};
  r.lanes = {{.id = "onednn:0", .name = "a CPU"},
             {.id = "cuda:0", .name = "a GPU"},
             {.id = "torch:cpu", .peer = true, .driver = "PyTorch"},
             {.id = "torch:cuda", .peer = true, .driver = "PyTorch"}};
  r.lanes[0].peaks = {.products = {{"f32", {3e11, "512x512x512"}}}, .copies = {{1e6, 2e10}, {1e8, 1e10}}};
  for (const char* precision : {"f32", "bf16"})
    for (const char* lane : {"onednn:0", "cuda:0", "torch:cpu"})
      r.measurements.push_back(synthetic(lane, 1, precision));
  r.measurements.push_back(synthetic("torch:cuda", 1, "f32"));
  r.measurements.push_back({.of = r.measurements[0].of, .lane = "vulkan:0", .status = "declined", .reason = "no <op>"});
  return r;
}

TEST(BenchResult, PeersOfTheSameKind) {
  Result r = some_result();
  EXPECT_EQ(r.peer_of(r.measurements[0])->lane, "torch:cpu");
  EXPECT_EQ(r.peer_of(r.measurements[1])->lane, "torch:cuda");
  EXPECT_EQ(r.peer_of(r.measurements[4])->lane, "torch:cpu") << "in bf16 there is but the CPU's";
  EXPECT_EQ(r.peer_of(r.measurements[2]), nullptr) << "a peer has none";
  for (const Measurement& m : r.measurements) {
    const Measurement* peer = r.peer_of(m);
    EXPECT_TRUE(!peer || peer->of == m.of);
  }
}

TEST(BenchResult, JsonAndBack) {
  Result r = some_result();
  Result back = read_json(json(r), "x.json");
  EXPECT_EQ(json(back), json(r));
  EXPECT_EQ(back.measurements.back().reason, "no <op>");
  for (const char* bad : {"", "[]", "{}", "{\"tutti_bench\": 2}", "{\"tutti_bench\": 1}"}) {
    try {
      read_json(bad, "x.json");
      ADD_FAILURE() << bad;
    } catch (const Error& e) {
      EXPECT_EQ(std::string(e.what()).substr(0, 8), "x.json: ");
    }
  }
}

TEST(BenchResult, FormsKeepWhatWasDeclined) {
  Result r = some_result();
  EXPECT_NE(tables(r).find("declined: no <op>"), std::string::npos);
  EXPECT_NE(csv(r).find("declined,no <op>"), std::string::npos);
  EXPECT_NE(page(r).find("declined: no &lt;op&gt;"), std::string::npos);
}

TEST(BenchResult, QuartilesInTheMediansUnit) {
  EXPECT_EQ(span_text(2.186e-6, 2.3e-6, 2.19e-6), "2.19 - 2.30 us");
  EXPECT_EQ(span_text(0.9e-3, 1.2e-3, 1.01e-3), "0.90 - 1.20 ms");
  EXPECT_EQ(span_text(0.5, 1.5, 1, " – "), "0.50 – 1.50 s");
  Result r = some_result();
  r.measurements.resize(1);
  r.measurements[0].seconds = {
      .count = 3, .least = 1e-6, .q1 = 2.186e-6, .median = 2.194e-6, .q3 = 2.3e-6, .most = 1e-3};
  EXPECT_NE(tables(r).find("2.19 us      2.19 - 2.30 us"), std::string::npos) << tables(r);
  EXPECT_NE(page(r).find("<td>2.19 us</td><td>2.19 – 2.30 us</td><td>1.00 – 1000.00 us</td>"), std::string::npos);
}

TEST(BenchResult, NoPeerNoColumn) {
  Result r = some_result();
  EXPECT_NE(tables(r).find("/peer"), std::string::npos);
  EXPECT_NE(page(r).find("to peer"), std::string::npos);
  std::erase_if(r.lanes, &LaneInfo::peer);
  std::erase_if(r.measurements, [](const Measurement& m) { return m.lane.starts_with("torch"); });
  EXPECT_EQ(tables(r).find("/peer"), std::string::npos);
  EXPECT_EQ(tables(r).find("3      -\n"), std::string::npos) << tables(r);
  EXPECT_EQ(page(r).find("to peer"), std::string::npos);
}

TEST(BenchOps, Named) {
  EXPECT_EQ(parse_op("matmul:2x3x4", false).shape, (Shape{2, 3, 4}));
  EXPECT_EQ(parse_op("matmul", false).shape, (Shape{512, 512, 512}));
  for (const char* bad : {"nop", "matmul:2x3", "matmul:2x3x4x5", "matmul:", "matmul:2x3x0", "matmul:2x3xa", "add:1,2"})
    EXPECT_THROW(parse_op(bad, false), Error) << bad;
  for (const OpKind& kind : op_kinds())
    EXPECT_NO_THROW(build(parse_op(std::string(kind.name), true), DType::f32)) << kind.name;
}

/// The left end of a label in a chart's text.
double left_of(const std::string& label) { return std::stod(label.substr(label.find("<text x=\"") + 9)); }

TEST(BenchPage, LabelsOfWideLettersStayApart) {
  Labels labels({95, 0, 400, 17});  // one line of text, room at the right alone
  const double first = left_of(labels.place(100, 8, "mmm")), second = left_of(labels.place(104, 8, "W"));
  EXPECT_GT(second, first);
  EXPECT_GE(second - first, 3 * 12.18);  // m of DejaVu Sans at 12.5 px, from the font file
}

}  // namespace
}  // namespace tutti::bench
