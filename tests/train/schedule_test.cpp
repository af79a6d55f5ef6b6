// Schedules and clipping against PyTorch's (golden/make_schedules.py), and what does not fit.
#include "train/step/schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "graph/eval.h"
#include "tests/train/files.h"
#include "train/step/clip.h"

namespace tutti {
namespace {

using nlohmann::json;
using test::expect_parts;
using test::message_of;

const json& golden() {
  static const json all = json::parse(std::ifstream(GOLDEN_DIR "/schedules.json"));
  return all;
}

TEST(Schedules, AreAsInPyTorch) {
  for (const auto& [text, factors] : golden().at("schedules").items()) {
    Schedule s = parse_schedule(text, static_cast<int64_t>(factors.size()));
    for (size_t k = 0; k < factors.size(); ++k)
      EXPECT_NEAR(s(static_cast<int64_t>(k)), factors[k].get<double>(), 1e-6) << text << " step " << k;
  }
  EXPECT_EQ(parse_schedule("constant", 5)(3), 1);
}

TEST(Schedules, OfFewStepsAreAsInPyTorch) {
  for (const auto& [total, schedules] : golden().at("short").items())
    for (const auto& [text, factors] : schedules.items()) {
      Schedule s = parse_schedule(text, std::stoll(total));
      for (size_t k = 0; k < factors.size(); ++k)
        EXPECT_NEAR(s(static_cast<int64_t>(k)), factors[k].get<double>(), 1e-9) << text << " of " << total << ", " << k;
    }
}

// Also where PyTorch divides by 0, and beyond the last step.
TEST(Schedules, AreFinite) {
  for (int64_t total : {1, 2, 3, 4, 100})
    for (const char* text : {"constant",         "step:1",          "step:1:0",        "multi_step:0",
                             "multi_step:1,1:0", "exponential:0",   "cosine",          "cosine:0:1",
                             "cosine:1",         "linear",          "plateau",         "warmup:0",
                             "warmup:1",         "warmup:0+cosine", "warmup:1+linear", "warmup:9+one_cycle",
                             "one_cycle",        "one_cycle:0.01",  "one_cycle:0.25",  "one_cycle:0.5",
                             "one_cycle:0.99"}) {
      Schedule s = parse_schedule(text, total);
      for (int64_t k = 0; k < total + 3; ++k) {
        EXPECT_GE(s(k), 0) << text << " of " << total << ", step " << k;
        EXPECT_LE(s(k), 1) << text << " of " << total << ", step " << k;
      }
    }
  EXPECT_EQ(parse_schedule("one_cycle:0.25", 4)(0), 1);
  EXPECT_EQ(parse_schedule("one_cycle:0.01", 100)(0), 1);
}

TEST(Schedules, NameWhatDoesNotFit) {
  for (const char* text : {"step:-1",     "step:0",     "step",          "cosine:x",         "multi_step:3,-1",
                           "one_cycle:1", "nothing",    "exponential:",  "step:1+cosine",    "warmup:-3",
                           "cosine:0:0",  "linear:3",   "constant:1",    "exponential:nan",  "exponential:inf",
                           "step:1:nan",  "cosine:nan", "one_cycle:nan", "multi_step:1:inf", "plateau:nan"})
    EXPECT_NE(message_of([&] { parse_schedule(text, 10); }).find("schedule"), std::string::npos) << text;
  expect_parts(message_of([] { parse_schedule("step:-1", 10); }), {"schedule step:-1", "'-1'", "a number >= 0"});
  for (const char* text : {"cosine", "linear", "one_cycle", "warmup:5+cosine"})
    expect_parts(message_of([&] { parse_schedule(text, 0); }), {"0 steps", "at least 1"});
}

TEST(Schedules, APlateauIsAsInPyTorch) {
  const json& plateau = golden().at("plateau");
  Plateau p{.factor = 0.5, .patience = 2};
  for (size_t k = 0; k < plateau.at("losses").size(); ++k) {
    p.update(plateau.at("losses")[k]);
    EXPECT_NEAR(p.scale, plateau.at("factors")[k].get<double>(), 1e-12) << k;
    Plateau again{.factor = 0.5, .patience = 2};
    again.restore(p.state());
    EXPECT_EQ(again.state(), p.state());
    p = again;
  }
  expect_parts(message_of([&] { p.restore("nothing"); }), {"plateau schedule is 'nothing'"});
  EXPECT_EQ(parse_plateau("plateau:0.2:3")->patience, 3);
  EXPECT_FALSE(parse_plateau("cosine"));
  expect_parts(message_of([] { parse_plateau("plateau:2"); }), {"plateau:2", "above 0 and below 1"});
}

TEST(Clipping, IsAsInPyTorch) {
  for (const char* how : {"norm", "value"}) {
    Graph g;
    Values d;
    std::map<std::string, Tensor> in;
    for (const json& values : golden().at("gradients")) {
      std::string name = fmt::format("d{}", d.size());
      Tensor t({DType::f64, {static_cast<int64_t>(values.size())}});
      t.at = values.get<std::vector<double>>();
      d.push_back(g.feed(name, t.type));
      in.emplace(name, t);
    }
    if (std::string(how) == "norm")
      clip_by_global_norm(d, 0.5);
    else
      clip_by_value(d, 0.5);
    std::vector<Tensor> got = evaluate(g, in, d);
    for (size_t k = 0; k < d.size(); ++k)
      for (size_t i = 0; i < got[k].at.size(); ++i)
        EXPECT_NEAR(got[k].at[i], golden().at("clipped").at(how)[k][i].get<double>(), 1e-12) << how;
  }
}

}  // namespace
}  // namespace tutti
