// Schedules and clipping against PyTorch's (golden/make_schedules.py), and what does not fit.
#include "train/schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "graph/eval.h"
#include "tests/train/files.h"
#include "train/clip.h"

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

TEST(Schedules, NameWhatDoesNotFit) {
  for (const char* text : {"step:-1", "step:0", "step", "cosine:x", "multi_step:3,-1", "one_cycle:1", "nothing",
                           "exponential:", "step:1+cosine", "warmup:-3", "cosine:0:0", "linear:3", "constant:1"})
    EXPECT_NE(message_of([&] { parse_schedule(text, 10); }).find("schedule"), std::string::npos) << text;
  expect_parts(message_of([] { parse_schedule("step:-1", 10); }), {"--schedule step:-1", "'-1'", "numbers from 0"});
}

TEST(Schedules, APlateauIsAsInPyTorch) {
  const json& plateau = golden().at("plateau");
  Plateau p{.factor = 0.5, .patience = 2};
  for (size_t k = 0; k < plateau.at("losses").size(); ++k) {
    p.look(plateau.at("losses")[k]);
    EXPECT_NEAR(p.scale, plateau.at("factors")[k].get<double>(), 1e-12) << k;
    Plateau again{.factor = 0.5, .patience = 2};
    again.restore(p.state());
    EXPECT_EQ(again.state(), p.state());
    p = again;
  }
  expect_parts(message_of([&] { p.restore("nothing"); }), {"plateau is 'nothing'"});
  EXPECT_EQ(parse_plateau("plateau:0.2:3")->patience, 3);
  EXPECT_FALSE(parse_plateau("cosine"));
  expect_parts(message_of([] { parse_plateau("plateau:2"); }), {"plateau:2", "between 0 and 1"});
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
