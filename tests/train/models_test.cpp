// The models of train/models at their tiny sizes in mixed precision, beside f32, on oneDNN; and every size on every
// device.
#include <gtest/gtest.h>

#include <cmath>

#include "core/runtime/selector.h"
#include "graph/lower/legalize.h"
#include "tests/support/models.h"
#include "tests/support/require.h"
#include "train/run/trainer.h"
#include "train/step/programs.h"
#include "train/task/model.h"

namespace tutti {

extern const ModelDef example_model;  // of train/template

namespace {

class Models : public testing::TestWithParam<std::string> {};

/// The losses of 20 steps on synthetic data.
std::vector<float> losses(const Device& device, const std::string& name, Precision precision) {
  const ModelDef& model = find_model(name);
  ModelOptions options{.size = "tiny"};
  data::Sources data =
      data::open_data(model.synthetic(options, 64), {.context = model.context ? model.context(options) : 0});
  Trainer t(device, model.task(options, *data.train),
            {.optimizer = Adam{.lr = 2e-3},
             .batch = model.size("tiny").batch,
             .eval_batch = 4,
             .precision = precision,
             .loss_scaling = {.initial = 1024}});
  while (t.steps() < 20) t.train(*data.train, 20 - t.steps());
  t.evaluate(*data.test);
  EXPECT_EQ(t.planned_bytes(), t.peak_bytes()) << name;
  EXPECT_EQ(t.skipped_steps(), 0) << name;
  return t.losses();
}

/// batch_norm's running statistics are the buffers of models.
bool has_batch_norm(const std::string& name) {
  const ModelDef& model = find_model(name);
  ModelOptions options{.size = "tiny"};
  data::Sources data =
      data::open_data(model.synthetic(options, 64), {.context = model.context ? model.context(options) : 0});
  return !Programs(model.task(options, *data.train)).declare(layout_of(*data.train, "set", true)).buffers.empty();
}

TEST_P(Models, LearnInMixedPrecisionAsInF32) {
  Device device;
  try {
    device = select_device("onednn:0");
  } catch (const Error& e) {
    return test::skip_without("onednn", e.what());
  }
  std::vector<float> exact = losses(device, GetParam(), Precision::f32);
  // Batches of four samples make batch_norm amplify what is rounded.
  bool normalised = has_batch_norm(GetParam());
  for (auto [precision, bound] :
       {std::pair(Precision::bf16, normalised ? 0.3 : 6e-2), std::pair(Precision::f16, normalised ? 0.1 : 8e-3)}) {
    std::vector<float> mixed = losses(device, GetParam(), precision);
    ASSERT_EQ(mixed.size(), exact.size());
    for (size_t i = 0; i < exact.size(); ++i)
      EXPECT_NEAR(mixed[i], exact[i], bound * std::max(1.0f, exact[i])) << name(precision) << " step " << i;
    EXPECT_NE(mixed, exact) << name(precision) << ": nothing was rounded";
    EXPECT_EQ(losses(device, GetParam(), precision), mixed) << name(precision);
  }
}

TEST(ModelTemplate, Learns) {
  const ModelDef& model = example_model;
  for (const ModelSize& size : model.sizes) {
    ModelOptions options{.size = size.name};
    data::Sources data = data::open_data(model.synthetic(options, 256));
    Trainer t(select_device("onednn:0"), model.task(options, *data.train), {.batch = 16, .eval_batch = 16});
    for (int epoch = 0; epoch < 20; ++epoch) t.train(*data.train);
    EXPECT_GT(t.evaluate(*data.train).metric("accuracy"), 0.7) << size.name;
  }
}

/// Every size by every device, without a kernel compiled: an operand too many or too large shows here.
TEST(ModelSizes, AreAcceptedByEveryDevice) {
  for (const Device& device : select_devices("*")) {
    for (Precision precision : {Precision::f32, Precision::bf16}) {
      Session session(device);
      Legalizer legalizer(session);
      for (const ModelDef* model : all_models())
        for (const ModelSize& size : model->sizes) {
          ModelOptions options{.size = size.name};
          data::Sources data =
              data::open_data(model->synthetic(options, 64), {.context = model->context ? model->context(options) : 0});
          Programs programs(model->task(options, *data.train), {.optimizer = Adam{}, .precision = precision});
          InputLayout form = layout_of(*data.train, "set", true);
          for (const Graph& g : {programs.training(form, size.batch), programs.evaluation(form, size.eval_batch)})
            for (const Declined& d : legalizer.declined(legalizer.expand(g)))
              // Beyond a kernel's reach only what is not a model's first size may be.
              if (&size == model->sizes.data() || d.reason.find("can address at most") == std::string::npos)
                ADD_FAILURE() << device.id << ", " << model->name << " " << size.name << ", " << name(precision) << ": "
                              << d.text << ": " << d.reason;
        }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Models, testing::ValuesIn(test::model_names()), test::model_label);

}  // namespace
}  // namespace tutti
