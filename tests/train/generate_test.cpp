// Drawing tokens: by the probabilities that the options leave, and what is said of a prompt that does not fit.
#include "train/run/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/train/files.h"
#include "train/task/model.h"

namespace tutti {
namespace {

using test::expect_parts;
using test::message_of;

const std::vector<float> scores = {1, 3, 2, 3, -1};  // e^x / sum: 0.0524, 0.387, 0.142, 0.387, 0.0071 at temperature 1

std::map<int32_t, double> frequencies(const GenerateOptions& o) {
  std::map<int32_t, double> all;
  constexpr int draws = 10000;
  for (int k = 0; k < draws; ++k) all[choose(scores, o, (k + 0.5) / draws)] += 1.0 / draws;
  return all;
}

TEST(Choose, TheLargestWithoutTemperature) {
  for (double draw : {0.0, 0.5, 0.999}) EXPECT_EQ(choose(scores, {.temperature = 0}, draw), 1);
  EXPECT_EQ(choose(scores, {.temperature = 2, .top_k = 1}, 0.9), 1);
  EXPECT_EQ(choose(scores, {.temperature = 2, .top_p = 1e-9}, 0.9), 1);
}

TEST(Choose, ByTheSoftmaxOfWhatIsLeft) {
  for (double t : {0.5, 1.0, 3.0}) {
    double total = 0;
    for (float s : scores) total += std::exp(s / t);
    auto found = frequencies({.temperature = t});
    for (size_t i = 0; i < scores.size(); ++i)
      EXPECT_NEAR(found[static_cast<int32_t>(i)], std::exp(scores[i] / t) / total, 2e-4) << t << " " << i;
  }
  auto two = frequencies({.temperature = 1, .top_k = 2});
  EXPECT_EQ(two.size(), 2u);
  EXPECT_NEAR(two[1], 0.5, 1e-3);
  // 0.387 + 0.387 are less than 0.8 of all, so the third is taken too.
  auto most = frequencies({.temperature = 1, .top_p = 0.8});
  EXPECT_EQ(most.size(), 3u);
  EXPECT_NEAR(most[2], std::exp(2) / (2 * std::exp(3) + std::exp(2)), 2e-4);
}

TEST(Generate, GoesOnUntilItStops) {
  const ModelDef& def = find_model("gpt");
  ModelOptions o{.size = "tiny"};
  data::Sources made = data::open_data(def.synthetic(o, 4), {.context = def.context(o)});
  Trainer t(select_device("reference:0"), def.task(o, *made.train), {.batch = 2});
  int64_t context = def.context(o);
  std::vector<int32_t> prompt = {1, 2, 3};
  std::vector<int32_t> all = generate(t, prompt, context, {.tokens = 100});
  EXPECT_EQ(all.size(), static_cast<size_t>(context) - 3) << "the context is full";
  EXPECT_EQ(generate(t, prompt, context, {.tokens = 100}), all) << "equal prompts give equal tokens";
  std::vector<int32_t> two = {all[0], all[1]};
  EXPECT_EQ(generate(t, prompt, context, {.tokens = 2}), two);
  EXPECT_TRUE(generate(t, prompt, context, {.stop = {all[0]}}).empty());
  int seen = 0;
  generate(t, prompt, context, {}, [&](int32_t) { return ++seen < 2; });
  EXPECT_EQ(seen, 2);
  GenerateOptions warm{.tokens = 4, .temperature = 5, .seed = 3};
  EXPECT_EQ(generate(t, prompt, context, warm), generate(t, prompt, context, warm));
  std::vector<int32_t> nothing, full(static_cast<size_t>(context), 1);
  expect_parts(message_of([&] { generate(t, nothing, context, {}); }), {"the prompt is empty"});
  expect_parts(message_of([&] { generate(t, full, context, {}); }),
               {"8 tokens, but the context has only 8", "shorter prompt"});
  expect_parts(message_of([&] { generate(t, prompt, context, {.tokens = 0}); }), {"0 tokens"});
  expect_parts(message_of([&] { generate(t, prompt, context, {.temperature = -1}); }), {"temperature is -1"});
  expect_parts(message_of([&] { generate(t, prompt, context, {.top_p = 0}); }), {"top-p is 0", "(0, 1]"});
}

TEST(Generate, TokenByTokenAsAllAtOnce) {
  for (const char* name : {"gpt", "llama", "char_lstm"}) {
    const ModelDef& def = find_model(name);
    ModelOptions o{.size = "tiny", .context = 8};
    data::Sources made = data::open_data(def.synthetic(o, 4), {.context = 8});
    Trainer t(select_device("reference:0"), def.task(o, *made.train), {.batch = 2});
    std::vector<int32_t> text = {1, 2, 3, 7, 5, 6, 2, 9};
    HostTensor tokens = host_tensor(DType::i32, {1, 8}, text);
    std::vector<float> want = t.predict(data::TensorSet("text", {{"tokens", tokens}, {"next", tokens}})).as<float>();
    size_t width = want.size() / 8;
    for (int round = 0; round < 2; ++round)  // the text of before is forgotten
      for (size_t place = 0; place < 8; ++place) {
        std::vector<float> got = t.next_token(text[place], static_cast<int64_t>(place), 8).as<float>();
        ASSERT_EQ(got.size(), width) << name;
        for (size_t k = 0; k < width; ++k) EXPECT_NEAR(got[k], want[place * width + k], 1e-6) << name << " " << place;
      }
    t.next_token(std::span(text).first(3), 0, 8);  // some at once, and others behind them
    std::vector<float> got = t.next_token(std::span(text).subspan(3), 3, 8).as<float>();
    for (size_t k = 0; k < width; ++k) EXPECT_NEAR(got[k], want[7 * width + k], 1e-6) << name;
  }
}

}  // namespace
}  // namespace tutti
