// Graphs of one's own by tensors: one call, or a runner that keeps state.
#include "train/run/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/runtime/selector.h"
#include "graph/functions.h"
#include "graph/ops.h"
#include "tests/support/error_of.h"

namespace tutti {
namespace {

using test::error_from;
using testing::ElementsAre;
using testing::HasSubstr;

HostTensor floats(const std::vector<float>& values) {
  return host_tensor(DType::f32, {static_cast<int64_t>(values.size())}, values);
}

/// total' = total + x y; the output "last" = x y.
Graph accumulate() {
  Graph g;
  TensorType t{DType::f32, {2}};
  Value p = g.feed("x", t) * g.feed("y", t);
  g.set_state("total", g.state("total", t) + p);
  g.set_state("last", p);
  return g;
}

TEST(RunGraph, OneCallGivesEveryState) {
  Graph g = accumulate();
  Device device = select_device("reference:0");
  HostTensors out = run(g, device, {{"x", floats({1, 2})}, {"y", floats({3, 4})}});
  EXPECT_THAT(out.at("last").as<float>(), ElementsAre(3, 8));
  EXPECT_THAT(out.at("total").as<float>(), ElementsAre(3, 8)) << "new state is zero";
  out = run(g, device, {{"x", floats({1, 2})}, {"y", floats({3, 4})}, {"total", floats({10, 20})}});
  EXPECT_THAT(out.at("total").as<float>(), ElementsAre(13, 28));
}

TEST(RunGraph, InputsThatDoNotFitAreNamed) {
  Graph g = accumulate();
  Device device = select_device("reference:0");
  auto why = [&](const HostTensors& in) {
    Error e = error_from([&] { run(g, device, in); });
    EXPECT_EQ(e.code, Code::invalid);
    return std::string(e.what()) + "; " + e.remedy;
  };
  EXPECT_THAT(why({{"x", floats({1, 2})}}), HasSubstr("no tensor for the feed 'y', f32[2]"));
  EXPECT_THAT(why({{"x", floats({1, 2})}, {"z", floats({1, 2})}}), HasSubstr("no feed 'z'; its feeds are 'x', 'y'"));
  EXPECT_THAT(why({{"x", floats({1, 2, 3})}, {"y", floats({1, 2})}}),
              HasSubstr("feed 'x' has type f32[2], but the given tensor has type f32[3]"));
  EXPECT_THAT(why({{"x", floats({1, 2})}, {"y", floats({1, 2})}, {"total", floats({1})}}),
              HasSubstr("state 'total' has type f32[2], but the given tensor has type f32[1]"));
}

TEST(RunGraph, AStatesOwnMemory) {
  Graph g = accumulate();
  Runner runner(select_device("reference:0"));
  auto compiled = runner.compile(g);
  compiled->prepare();
  auto [type, native] = runner.native("total");
  EXPECT_EQ(type, (TensorType{DType::f32, {2}}));
  EXPECT_EQ(native.kind, TUTTI_NATIVE_HOST);
  EXPECT_EQ(native.bytes, 8u);
  auto* total = reinterpret_cast<float*>(native.data + native.offset);
  HostTensors feeds = {{"x", floats({1, 2})}, {"y", floats({3, 4})}};
  runner.wait(compiled->run(feeds));
  EXPECT_THAT(std::vector<float>(total, total + 2), ElementsAre(3, 8)) << "not read";
  total[0] = 100;
  runner.wait(compiled->run(feeds));
  EXPECT_THAT(runner.read("total").as<float>(), ElementsAre(103, 16)) << "not written";
  EXPECT_EQ(runner.native("total").second.data, native.data) << "it stays where it is";
  Error e = error_from([&] { runner.native("nothing"); });
  EXPECT_THAT(std::string(e.what()), HasSubstr("no compiled graph has a state 'nothing'"));
}

TEST(RunGraph, ARunnerKeepsStateBetweenRuns) {
  Graph g = accumulate();
  Runner runner(select_device("reference:0"));
  auto step = runner.compile(g);
  EXPECT_THAT(error_from([&] { runner.read("nothing"); }).what(), HasSubstr("no compiled graph has a state 'nothing'"));
  step->prepare();
  HostTensors feeds = {{"x", floats({1, 2})}, {"y", floats({3, 4})}};
  for (int k = 0; k < 3; ++k) runner.wait(step->run(feeds));
  EXPECT_THAT(runner.read("total").as<float>(), ElementsAre(9, 24));
  runner.write("total", floats({0, 1}));
  runner.wait(step->run(feeds));
  EXPECT_THAT(runner.read("total").as<float>(), ElementsAre(3, 9));
  EXPECT_EQ(runner.read("total").item(1), 9);
}

TEST(HostTensors, SayWhatTheyCannotBeReadAs) {
  HostTensor t = floats({1, 2});
  EXPECT_THAT(error_from([&] { t.as<double>(); }).what(), HasSubstr("f32[2] cannot be read as elements of 8 bytes"));
  EXPECT_THAT(error_from([&] { t.item(2); }).what(), HasSubstr("element 2 is out of range for f32[2], which has 2"));
  EXPECT_EQ(host_tensor(DType::bf16, {1}, std::vector<uint16_t>{0x3F80}).item(), 1);
}

}  // namespace
}  // namespace tutti
