// Faults planted in single kernels are found at the right node, and devices without one agree.
#include <fmt/format.h>

#include <algorithm>

#include "data/files/checkpoint.h"
#include "graph/op.h"
#include "tests/runtime/plugin_folder.h"
#include "tests/support/require.h"
#include "verify/bisect/bisect.h"
#include "verify/bisect/bisect_exact.h"

namespace tutti::test {
namespace {

using bisect::Finding;

/// One folder with the plugin "planted", beside the real ones: the process has one registry.
class Planted : public testing::Environment {
 public:
  void SetUp() override {
    for (const char* v : {"TUTTI_DEVICE", "TUTTI_DEVICE_ORDER"}) unsetenv(v);
    folder().library("planted", "planted");
    folder().manifest("planted");
    setenv("TUTTI_PLUGIN_PATH", folder().path().c_str(), 1);
  }
  static const PluginFolder& folder() {
    static PluginFolder f;
    return f;
  }
  /// The device, which from now on has this fault.
  static Device with(const std::string& fault) {
    folder().write("planted.so.txt", fault);
    return select_device("planted:0");
  }
};
[[maybe_unused]] auto* const planted = testing::AddGlobalTestEnvironment(new Planted);

bisect::BisectOptions cnn() {
  return {.task = classification(nn::Sequential{nn::Conv2d(4, 3, {.padding = 1}), nn::Relu(), nn::MaxPool2d(2),
                                                nn::Flatten(), nn::Linear(16), nn::Relu(), nn::Linear(4)}),
          .set = data::synthetic({1, 8, 8}, 4, 64, 4).sources().train,
          .batch = 6,
          .steps = 2};
}

bisect::BisectResult against_reference(const std::string& fault) {
  return bisect::bisect(Planted::with(fault), select_device("reference:0"), cnn());
}

struct Case {
  const char *fault, *op, *label;
  Finding::Kind kind = Finding::node;
  bool alone = true;  ///< whether the node alone is wrong as well
  int64_t step = 0;
};

class BisectFinds : public testing::TestWithParam<Case> {};

TEST_P(BisectFinds, TheNodeAndTheSide) {
  const Case& c = GetParam();
  bisect::BisectResult r = against_reference(c.fault);
  ASSERT_EQ(r.findings.size(), 1u);
  const Finding& f = r.findings[0];
  EXPECT_EQ(f.side, 0u);
  EXPECT_EQ(f.kind, c.kind);
  EXPECT_EQ(f.step, c.step);
  ASSERT_FALSE(f.blamed.empty());
  EXPECT_EQ(f.blamed[0].op->name, c.op);
  EXPECT_EQ(f.blamed[0].label, c.label);
  EXPECT_EQ(f.blamed.size() > 1, c.kind == Finding::fused);
  EXPECT_FALSE(f.own.ok);
  EXPECT_GT(f.own.share, 1);
  EXPECT_NE(f.own.got, f.own.want);
  ASSERT_TRUE(f.alone && f.other) << f.problem;
  EXPECT_EQ(f.alone->ok, !c.alone);
  EXPECT_TRUE(f.other->ok) << f.other->text;
}

const Case cases[] = {
    {"gradient", "conv2d_dw", "0.backward"},
    {"sign", "conv2d_dw", "0.backward"},
    {"stale", "matmul", "4", Finding::node, false, 1},
    {"row", "matmul", "6"},
    {"epsilon", "adam", "update"},
    {"bias", "add", "4"},
    {"window", "max_pool2d_dx", "2.backward"},
    {"softmax", "softmax", "loss.backward"},
    {"mask", "select", "1.backward"},
    {"tail", "sum", "6.backward"},
    {"gather", "gather", "data"},
    {"other", "mul", "loss.backward"},
    {"fused", "conv2d", "0", Finding::fused},
    {"together", "max_pool2d", "2", Finding::fused},
    {"damaged", "relu", "1", Finding::memory, false},
};
INSTANTIATE_TEST_SUITE_P(Planted, BisectFinds, testing::ValuesIn(cases),
                         [](const auto& info) { return info.param.fault; });

TEST(Bisect, NoFaultNothingFound) {
  bisect::BisectResult r = against_reference("none");
  EXPECT_TRUE(r.findings.empty());
  EXPECT_EQ(r.steps, 2);
  for (const bisect::BisectSide& s : r.sides) {
    EXPECT_LE(s.share, 1) << s.device.id;
    EXPECT_LE(s.error, 1e-6) << s.device.id;
  }
}

/// A step that is wrong unless any value is kept: the parameters hardly move, their change is what shows it.
TEST(Bisect, OnlyTheStepAsItIs) {
  bisect::BisectOptions o = cnn();
  o.optimizer = Sgd{};
  bisect::BisectResult r = bisect::bisect(Planted::with("crowded"), select_device("reference:0"), o);
  ASSERT_EQ(r.findings.size(), 1u);
  EXPECT_EQ(r.findings[0].kind, Finding::node);
  EXPECT_EQ(r.findings[0].blamed[0].op->name, "sgd");
  EXPECT_NEAR(r.sides[0].apart, 0.2 / 1.2, 0.01);
  EXPECT_TRUE(bisect::bisect(Planted::with("none"), select_device("reference:0"), o).findings.empty());
}

TEST(Bisect, TheSecondDeviceMayBeWrongOrBoth) {
  Device wrong = Planted::with("tail");
  bisect::BisectResult r = bisect::bisect(select_device("reference:0"), wrong, cnn());
  ASSERT_EQ(r.findings.size(), 1u);
  EXPECT_EQ(r.findings[0].side, 1u);
  r = bisect::bisect(wrong, wrong, cnn());
  ASSERT_EQ(r.findings.size(), 2u);
  EXPECT_FALSE(r.findings[0].other->ok);
}

/// A quotient, and denormals within the step.
struct Fragile {
  static Value forward(nn::Builder&, Value x) {
    Value quotient = x / (x * x + 3.0);
    return quotient * 0x1p-100 * 0x1p-30 * 0x1p100 * 0x1p30;
  }
};

TEST(Bisect, ExactNamesADivisionAndFlushedDenormals) {
  bisect::BisectOptions o = cnn();
  o.task = classification(nn::Sequential{nn::Flatten(), nn::Linear(16), Fragile(), nn::Linear(4)});
  for (const auto& [fault, op] : {std::pair{"division", "div"}, {"flush", "mul"}}) {
    bisect::ExactResult r = bisect::bisect_exact(select_device("reference:0"), Planted::with(fault), o);
    ASSERT_TRUE(r.finding) << fault;
    EXPECT_EQ(r.finding->blamed.op->name, op);
    EXPECT_EQ(r.finding->blamed.label, "2") << fault;
    EXPECT_EQ(r.finding->wrong, 1u) << fault;
  }
  EXPECT_FALSE(bisect::bisect_exact(select_device("reference:0"), Planted::with("none"), o).finding);
}

TEST(Bisect, ADeclinedNodeIsNamed) {
  std::string error = error_of([] { against_reference("decline"); }, Code::declined);
  EXPECT_TRUE(has(error, "planted:0 declines"));
  EXPECT_TRUE(has(error, "at data: no taste for gather"));
}

TEST(Bisect, BadOptions) {
  bisect::BisectOptions o = cnn();
  o.batch = 65;
  Device d = select_device("reference:0");
  EXPECT_TRUE(has(error_of([&] { bisect::bisect(d, d, o); }), "has 64 samples, fewer than one batch of 65"));
  o = cnn();
  o.steps = 0;
  EXPECT_TRUE(has(error_of([&] { bisect::bisect(d, d, o); }), "at least 1"));
}

/// The file that a finding saved, changed.
std::string saved_but(const std::function<void(Checkpoint&)>& change) {
  static const std::string path = [] {
    std::string p = Planted::folder() / "node.safetensors";
    write_replay(p, against_reference("bias").findings.at(0).replay);
    return p;
  }();
  Checkpoint c = read_checkpoint(path);
  change(c);
  std::string changed = Planted::folder() / "changed.safetensors";
  write_checkpoint(changed, c);
  return changed;
}

/// The error that reading it gives.
std::string reading(const std::function<void(Checkpoint&)>& change) {
  std::string path = saved_but(change);
  return error_of([&] { bisect::read_replay(path); });
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from << " in " << text;
  text.replace(at, from.size(), to);
}

TEST(Replay, HoldsWhatTheFindingHolds) {
  bisect::BisectResult r = against_reference("fused");
  Finding& f = r.findings.at(0);
  f.replay.about["command"] = "tutti bisect";
  std::string path = Planted::folder() / "fused.safetensors";
  write_replay(path, f.replay);
  bisect::Replay back = bisect::read_replay(path);
  EXPECT_EQ(back.graph.nodes().size(), f.blamed.size());
  for (size_t k = 0; k < f.blamed.size(); ++k) {
    EXPECT_EQ(back.graph.nodes()[k].op, f.blamed[k].op);
    EXPECT_EQ(back.graph.nodes()[k].attrs, f.blamed[k].attrs);
  }
  EXPECT_EQ(back.about.at("command"), "tutti bisect");
  ASSERT_EQ(back.answers.size(), 3u);
  EXPECT_EQ(back.answers[0].how, "in the step");
  EXPECT_EQ(back.answers[0].results.at(f.own.result).at[f.own.at], f.own.got);
  parity::Tensors truth = bisect::truths_of(back.graph, back.inputs);
  EXPECT_EQ(truth.at(f.own.result).at, f.replay.truth.at(f.own.result).at);
  parity::Tensors now = bisect::run_alone(Planted::with("fused"), back.graph, back.inputs);
  EXPECT_FALSE(bisect::judge(back.graph, back.inputs, truth, now).ok);
  now = bisect::run_alone(Planted::with("none"), back.graph, back.inputs);
  EXPECT_TRUE(bisect::judge(back.graph, back.inputs, truth, now).ok);
}

TEST(Replay, DamagedFilesAreRefused) {
  auto graph = [](const std::string& from, const std::string& to) {
    return reading([&](Checkpoint& c) { replace(c.metadata.at("graph"), from, to); });
  };
  EXPECT_TRUE(has(graph("\"add\"", "\"nop\""), "unknown op 'nop'"));
  EXPECT_TRUE(has(graph("\"feed\"", "\"food\""), "unknown role 'food'"));
  EXPECT_TRUE(has(graph("\"inputs\":[", "\"inputs\":[77,"), "there is no value 77"));
  EXPECT_TRUE(has(graph("\"inputs\":[", "\"inputs\":[-1,"), "there is no value -1"));
  EXPECT_TRUE(has(graph("\"inputs\":[", "\"inputs\":[0,"), "add"));
  EXPECT_TRUE(has(graph("\"shape\":[", "\"shape\":[-1,"), "negative"));
  EXPECT_TRUE(has(graph("\"shape\":[", "\"shape\":[10000000,"), "too large"));
  EXPECT_TRUE(has(graph("\"version\":1", "\"version\":9"), "version 9 of op 'add'"));
  EXPECT_TRUE(has(graph("\"nodes\"", "\"knots\""), "no 'nodes'"));
  EXPECT_TRUE(has(graph("{", "["), "no JSON"));
  EXPECT_TRUE(has(reading([](Checkpoint& c) { c.metadata.at("format") = "safe"; }), "its format is 'safe'"));
  EXPECT_TRUE(has(reading([](Checkpoint& c) { c.metadata.erase("answers"); }), "no 'answers'"));
  EXPECT_TRUE(
      has(reading([](Checkpoint& c) { c.metadata.at("answers") = std::string(99, '['); }), "nested too deeply"));
  for (const char* kind : {"input/", "truth/", "answer/0/"}) {
    auto first = [&](Checkpoint& c) {
      return std::ranges::find_if(c.tensors, [&](const auto& t) { return t.first.starts_with(kind); });
    };
    EXPECT_TRUE(has(reading([&](Checkpoint& c) { c.tensors.erase(first(c)); }), "no tensor"));
    EXPECT_TRUE(has(reading([&](Checkpoint& c) {
                      first(c)->second = host_tensor(DType::f32, {1, 1, 1}, std::vector<float>{0});
                    }),
                    "the graph has"));
  }
}

TEST(Replay, TheChecksumCoversTensorsAndTexts) {
  auto flip = [](const char* tensor) {
    return reading([&](Checkpoint& c) {
      auto it = std::ranges::find_if(c.tensors, [&](const auto& t) { return t.first.starts_with(tensor); });
      it->second.bytes.back() ^= std::byte{1};
    });
  };
  for (const char* tensor : {"input/", "truth/", "answer/0/"}) EXPECT_TRUE(has(flip(tensor), "its checksum"));
  EXPECT_TRUE(has(reading([](Checkpoint& c) { replace(c.metadata.at("answers"), "alone", "a1one"); }), "its checksum"));
  EXPECT_TRUE(has(reading([](Checkpoint& c) { c.metadata.at("checksum") = ""; }), "its checksum"));
  bisect::read_replay(saved_but([](Checkpoint&) {}));
  bisect::read_replay(saved_but([](Checkpoint& c) { c.metadata.erase("checksum"); }));  // an older file
}

TEST(Replay, AFileWithoutPhasesHasThemInItsLabels) {
  auto phase = [](const std::string& label, const std::string& phase = "") {
    std::string path = saved_but([&](Checkpoint& c) {
      c.metadata.erase("checksum");
      replace(c.metadata.at("graph"), "\"label\":\"4\",\"phase\":\"forward\"", "\"label\":\"" + label + "\"" + phase);
    });
    return name(bisect::read_replay(path).graph.nodes().at(0).phase);
  };
  EXPECT_EQ(phase("4"), "forward");
  EXPECT_EQ(phase("4.backward"), "backward");
  EXPECT_EQ(phase("backward"), "forward");
  EXPECT_EQ(phase("update"), "update");
  EXPECT_EQ(phase("update.4"), "update");
  EXPECT_EQ(phase("update4"), "forward");
  for (std::string_view known : {"forward", "loss", "backward", "update", "bookkeeping"})
    EXPECT_EQ(phase("4.backward", fmt::format(",\"phase\":\"{}\"", known)), known);
  EXPECT_TRUE(has(error_of([&] { phase("4", ",\"phase\":\"sideways\""); }), "unknown phase 'sideways'"));
}

class BisectDevices : public testing::TestWithParam<const char*> {};

TEST_P(BisectDevices, OneDnnAgreesWithTheReference) {
  Device onednn;
  try {
    onednn = select_device("onednn:0");
  } catch (const Error& e) {
    return test::skip_without("onednn", e.what());
  }
  bisect::BisectOptions o = cnn();
  if (std::string(GetParam()) == "mlp")
    o.task =
        classification(nn::Sequential{nn::Flatten(), nn::Linear(48), nn::Gelu(), nn::Dropout(0.25), nn::Linear(4)});
  bisect::BisectResult r = bisect::bisect(onednn, select_device("reference:0"), o);
  for (const Finding& f : r.findings)
    ADD_FAILURE() << f.side << ": " << (f.blamed.empty() ? "states" : f.blamed[0].op->name) << ": " << f.own.text;
  EXPECT_EQ(r.steps, 2);
  EXPECT_LE(r.sides[0].share, 1);
}
INSTANTIATE_TEST_SUITE_P(Models, BisectDevices, testing::Values("mlp", "cnn"));

}  // namespace
}  // namespace tutti::test
