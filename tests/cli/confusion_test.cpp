// What a classifier's test set says of it: counts by label, no answer for tasks of another kind, and no error hidden.
#include "cli/report/confusion.h"

#include <gtest/gtest.h>

#include "graph/functions.h"
#include "tests/train/files.h"
#include "train/task/tasks.h"

namespace tutti::cli {
namespace {

/// Sample i is two numbers and the label i % 2.
struct Points : data::Source {
  Points() : Source("points") {}
  int64_t size() const override { return 6; }
  std::vector<data::Column> columns() const override {
    return {{.name = "input", .type = {DType::f32, {2}}}, {.name = "label", .type = {DType::i32, {}}, .classes = 2}};
  }
  void read(const std::string& column, std::span<const int32_t> samples, void* to) const override {
    if (broken) throw invalid("sample 3 is damaged", "copy it again");
    for (size_t k = 0; k < samples.size(); ++k) {
      int32_t label = samples[k] % 2;
      if (column == "label")
        static_cast<int32_t*>(to)[k] = label;
      else
        static_cast<float*>(to)[2 * k] = static_cast<float>(label), static_cast<float*>(to)[2 * k + 1] = 1;
    }
  }
  bool broken = false;
};

std::optional<Confusion> after_a_step(const Task& task, Points& set, bool broken = false) {
  Trainer trainer(select_device("reference:0"), task, {.batch = 3, .eval_batch = 4});
  EXPECT_EQ(trainer.output_shape(), std::nullopt) << "nothing is known before the data";
  trainer.train(set, 1);
  set.broken = broken;
  return confusion(trainer, set);
}

TEST(Confusion, CountsEverySampleByItsLabel) {
  Points set;
  std::optional<Confusion> c = after_a_step(classification(nn::Linear(2)), set);
  ASSERT_TRUE(c);
  for (size_t label : {0, 1}) EXPECT_EQ(c->count(label, 0) + c->count(label, 1), 3);
  EXPECT_EQ(c->mistakes.size(), static_cast<size_t>(c->count(0, 1) + c->count(1, 0)));
}

TEST(Confusion, ClassesKeepTheirNamesWhereAModelHasMoreOutputs) {
  Points set;
  set.vocabulary = R"(["cat", "dog", "emu"])";  // none of the samples is an emu
  std::optional<Confusion> c = after_a_step(classification(nn::Linear(10)), set);
  ASSERT_TRUE(c);
  ASSERT_GE(c->classes.size(), 2u);
  EXPECT_EQ(c->classes[0], "cat");
  EXPECT_EQ(c->classes[1], "dog");
  size_t n = c->classes.size();
  EXPECT_EQ(c->counts.size(), n * n);
  for (size_t k = 0; k < n; ++k) {
    int64_t all = 0;
    for (size_t i = 0; i < n; ++i) all += c->count(i, k) + c->count(k, i);
    EXPECT_GT(all, 0) << c->classes[k];
  }
  for (const Confusion::Mistake& m : c->mistakes) EXPECT_LT(static_cast<size_t>(std::max(m.label, m.given)), n);
}

TEST(Confusion, NoneOfATaskThatGivesNoScores) {
  Points set;
  Task silent([](nn::Builder& b, const Batch& x) {
    Outcome out = classified(b.output(nn::Linear(2).forward(b, b.input(x["input"]))), x);
    out.output = {};
    return out;
  });
  EXPECT_FALSE(after_a_step(silent, set));
  EXPECT_FALSE(after_a_step(binary_classification(nn::Linear(1)), set));
}

TEST(Confusion, AnErrorOfThePredictionIsNotTakenForNone) {
  Points set;
  EXPECT_EQ(test::message_of([&] { after_a_step(classification(nn::Linear(2)), set, true); }),
            "sample 3 is damaged | copy it again");
}

}  // namespace
}  // namespace tutti::cli
