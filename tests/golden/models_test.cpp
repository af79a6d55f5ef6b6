// Twenty training steps of every model at its tiny size, in float64 on the reference, against PyTorch's
// (models_*.json).
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/runtime/selector.h"
#include "data/dataset.h"
#include "tests/golden/golden_data.h"
#include "tests/support/models.h"
#include "train/run/runner.h"
#include "train/step/programs.h"
#include "train/task/model.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr double tolerance = 1e-9;

HostTensor host_tensor_of(const json& j) {
  Tensor t = golden::to_tensor(j);
  HostTensor h{t.type, std::vector<std::byte>(num_bytes(t.type))};
  for (size_t i = 0; i < t.at.size(); ++i) store_element(t.type.dtype, h.bytes.data(), i, t.at[i]);
  return h;
}

/// A data set of the columns of the first batch, whose types are all that is asked of it.
data::TensorSet set_of(const json& batch, const json& classes) {
  std::vector<std::pair<std::string, HostTensor>> columns;
  std::map<std::string, int64_t> limits;
  for (const auto& [name, t] : batch.items()) {
    columns.emplace_back(name, host_tensor_of(t));
    if (classes.contains(name)) limits[name] = classes[name];
  }
  return {"golden", std::move(columns), std::move(limits)};
}

Optimizer optimizer_of(const json& run) {
  Optimizer o = optimizer_named(run.at("optimizer"));
  json left = run.at("options");
  for (const Hyperparameter& h : hyperparameters(o)) {
    if (!left.contains(h.option)) continue;
    if (h.flag)
      *h.flag = left[h.option].get<double>() != 0;
    else
      *h.value = left[h.option];
    left.erase(h.option);
  }
  EXPECT_TRUE(left.empty()) << run.at("optimizer") << " lacks " << left;
  return o;
}

void expect_sample(const HostTensor& got, const json& want, const std::string& what) {
  std::vector<double> x = got.as<double>();
  double norm = 0;
  for (double v : x) norm += v * v;
  EXPECT_NEAR(std::sqrt(norm), want.at("norm").get<double>(), tolerance * (1 + std::sqrt(norm))) << what;
  size_t step = std::max<size_t>(1, x.size() / 64);
  for (size_t k = 0; k < want.at("sample").size(); ++k)
    ASSERT_NEAR(x.at(k * step), want.at("sample")[k].get<double>(), tolerance * (1 + std::abs(x[k * step])))
        << what << " element " << k * step;
}

class GoldenModels : public testing::TestWithParam<std::string> {};

TEST_P(GoldenModels, TwentyStepsAreAsInPyTorch) {
  std::string name = GetParam();
  json file = golden::read("models_" + name + ".json");
  data::TensorSet set = set_of(file.at("batches")[0], file.at("classes"));
  InputLayout form = layout_of(set, "golden", false);
  for (const json& run : file.at("runs")) {
    Programs programs(find_model(name).task({.size = "tiny"}, set),
                      {.optimizer = optimizer_of(run), .precision = Precision::f64});
    ModelSignature declared = programs.declare(form);
    EXPECT_EQ(declared.parameters.size() + declared.buffers.size(), file.at("parameters").size()) << name;
    Runner runner(select_device("reference:0"));
    auto step = runner.compile(programs.training(form, set.size()));
    step->prepare();
    for (const auto& [parameter, t] : file.at("parameters").items()) runner.write(parameter, host_tensor_of(t));
    HostTensors feeds = {{"lr", host_tensor(DType::f64, {}, std::vector<double>{run.at("options").at("lr")})}};
    const json& batches = file.at("batches");
    ASSERT_EQ(run.at("losses").size(), 20u);
    for (size_t i = 0; i < run.at("losses").size(); ++i) {
      for (const auto& [column, t] : batches[i % batches.size()].items()) feeds[column] = host_tensor_of(t);
      runner.wait(step->run(feeds));
      double loss = runner.read("losses").item(i), want = run.at("losses")[i];
      ASSERT_NEAR(loss, want, tolerance * (1 + std::abs(want))) << name << " step " << i;
    }
    for (const auto& [parameter, t] : run.at("after").items())
      expect_sample(runner.read(parameter), t, name + " " + run.at("optimizer").get<std::string>() + " " + parameter);
  }
}

TEST(GoldenOptimizers, EveryOneHasARun) {
  std::set<std::string> runs;
  json file = golden::read("models_lstm.json");
  for (const json& run : file.at("runs")) runs.insert(run.at("optimizer"));
  for (const Optimizer& o : all_optimizers()) EXPECT_TRUE(runs.contains(name(o))) << name(o);
}

std::vector<std::string> all_but_mlp_and_cnn() {  // training_test.cpp has theirs
  std::vector<std::string> names = test::model_names();
  std::erase(names, "mlp");
  std::erase(names, "cnn");
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModels, testing::ValuesIn(all_but_mlp_and_cnn()), test::model_label);

}  // namespace
}  // namespace tutti
