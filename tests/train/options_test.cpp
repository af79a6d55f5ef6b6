// Options of models and data: each has an effect, or is refused by name.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/status.h"
#include "data/form.h"
#include "graph/print.h"
#include "tests/train/files.h"
#include "train/io/description.h"
#include "train/run/shares.h"
#include "train/step/programs.h"
#include "train/task/losses.h"
#include "train/task/model_option.h"

namespace tutti {
namespace {

using namespace tutti::test;

struct Change {
  const char* option;
  void (*set)(ModelOptions&);
};
const Change changes[] = {
    {"layers", [](ModelOptions& o) { o.layers = "784,20,10"; }},
    {"activation", [](ModelOptions& o) { o.net.activation = "gelu"; }},
    {"dropout", [](ModelOptions& o) { o.net.dropout = 0.3; }},
    {"init", [](ModelOptions& o) { o.net.init = nn::Scheme::kaiming_normal; }},
    {"loss", [](ModelOptions& o) { o.loss = "mse"; }},
};

/// The graphs of a run, as text.
std::string graphs(const ModelDef& model, const ModelOptions& options, const data::Source& set) {
  Programs programs(model.task(options, set));
  InputLayout form = layout_of(set, "train", false);
  return print(programs.training(form, 4)) + print(programs.initialization(programs.declare(form)));
}

class ModelsOptions : public testing::TestWithParam<const ModelDef*> {};

TEST_P(ModelsOptions, HaveAnEffectOrAreRefused) {
  const ModelDef& model = *GetParam();
  for (const ModelSize& size : {model.sizes[0], model.size("tiny")}) {
    ModelOptions plain{.size = size.name};
    auto set = data::open_data(model.synthetic(plain, 8), {.context = model.context ? model.context(plain) : 0}).train;
    const std::string usual = graphs(model, plain, *set);
    for (const Change& change : changes) {
      SCOPED_TRACE(model.name + ":" + size.name + " --" + change.option);
      ModelOptions changed = plain;
      change.set(changed);
      const bool applies =
          std::ranges::find(model_options(), change.option, &ModelOption::name)->applies(model, size.name);
      try {
        const std::string text = graphs(model, changed, *set);
        EXPECT_TRUE(applies);
        EXPECT_NE(text, usual) << "taken, and without effect";
      } catch (const Error& e) {
        EXPECT_FALSE(applies) << e.what();
        expect_parts(e.what(), {change.option, "has no effect on " + model.name});
        EXPECT_FALSE(e.remedy.empty());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ModelsOptions, testing::ValuesIn(all_models().begin(), all_models().end()),
                         [](const auto& info) { return info.param->name; });

TEST(Options, OfAFilesModel) {
  ModelDef net = described_model(R"({"input": [6], "layers": ["Linear"]})", "net.json");
  auto set = data::open_data("synthetic:6:3:8:4").train;
  for (const Change& change : changes) {
    ModelOptions changed;
    change.set(changed);
    if (change.option == std::string("loss")) {
      EXPECT_NO_THROW(net.check(changed));
      continue;
    }
    expect_parts(message_of([&] { net.task(changed, *set); }), {change.option, "has no effect on net"});
  }
}

TEST(Options, OfDataHaveAnEffectOrAreRefused) {
  for (const data::DataForm* form : data::all_data_forms()) {
    const std::string spec = form->takes_arguments ? form->name + ":nothing" : form->name;
    if (!form->takes.contains("context"))
      expect_parts(message_of([&] { data::open_data(spec, {.context = 7}); }),
                   {"context 7", "has no effect on data '" + spec + "'"});
    if (!form->takes.contains("tokenizer"))
      expect_parts(message_of([&] { data::open_data(spec, {.tokenizer = "bytes"}); }),
                   {"tokenizer bytes", "has no effect on data '" + spec + "'"});
  }
  EXPECT_EQ(data::open_data("synthetic-text:11:400", {.context = 7}).train->column("tokens").type.shape, Shape{7});
}

TEST(Shares, AreInProportionToSpeed) {
  using Shares = std::vector<int64_t>;
  EXPECT_EQ(shares_by_speed(64, 1, {1, 3}), (Shares{48, 16}));
  EXPECT_EQ(shares_by_speed(64, 8, {1, 2.5}), (Shares{48, 16}));
  EXPECT_EQ(shares_by_speed(10, 1, {1, 1, 1}), (Shares{4, 3, 3}));
  EXPECT_EQ(shares_by_speed(8, 2, {1, 1e6, 1e6}), (Shares{4, 2, 2})) << "every rank has a sample for each part";
  EXPECT_EQ(shares_by_speed(100, 1, {1e-3, 5, 1e-3, 2}), (Shares{49, 1, 49, 1}));
}

}  // namespace
}  // namespace tutti
