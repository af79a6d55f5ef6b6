// LoRA and weights from files: what is trained, what is kept, and what is said of what does not fit. PEFT is the judge
// of the numbers (lora_peer.py).
#include <gtest/gtest.h>

#include "data/files/checkpoint.h"
#include "nn/modules.h"
#include "tests/train/files.h"
#include "train/trainer.h"
#include "train/weights.h"

namespace tutti {
namespace {

using test::expect_parts;
using test::Folder;
using test::message_of;
using test::put;

/// y = x_0 - x_1, as a regression.
data::TensorSet samples() {
  std::vector<float> x, y;
  for (int i = 0; i < 32; ++i) {
    x.push_back(static_cast<float>(i % 7) / 7);
    x.push_back(static_cast<float>(i % 5) / 5);
    y.push_back(x[x.size() - 2] - x.back());
  }
  return {"samples", {{"input", host_tensor(DType::f32, {32, 2}, x)}, {"target", host_tensor(DType::f32, {32, 1}, y)}}};
}

Task task() { return regression(nn::Sequential{nn::Linear(8), nn::Tanh(), nn::Linear(1)}); }

Trainer trainer(const nn::Lora& lora, std::vector<ParameterGroup> groups = {}) {
  return {
      select_device("reference:0"), task(), {.optimizer = Sgd{.lr = 0.2}, .groups = groups, .lora = lora, .batch = 32}};
}

HostTensors states(Trainer& t) {
  HostTensors all;
  for (const nn::Parameter& p : t.model_states()) all.emplace(p.name, t.state(p.name));
  return all;
}

TEST(LoraTraining, AdaptersAloneAreTrained) {
  Trainer t = trainer({.rank = 2, .alpha = 4, .targets = {"0"}});
  data::TensorSet set = samples();
  t.prepare(set);
  HostTensors before = states(t);
  EXPECT_EQ(to_string(before.at("0.lora_A.weight").type), "f32[2, 2]");
  EXPECT_EQ(to_string(before.at("0.lora_B.weight").type), "f32[8, 2]");
  EXPECT_FALSE(before.contains("2.lora_A.weight"));
  for (float b : before.at("0.lora_B.weight").as<float>()) EXPECT_EQ(b, 0);
  double first = t.evaluate(set).loss;
  for (int k = 0; k < 20; ++k) t.train(set);
  EXPECT_LT(t.evaluate(set).loss, 0.7 * first);
  for (const auto& [name, value] : states(t)) EXPECT_EQ(value == before.at(name), !nn::is_adapter(name)) << name;
}

TEST(LoraTraining, GroupsGoBeforeIt) {
  Trainer t = trainer({.rank = 2, .alpha = 4, .targets = {"0"}}, {{.pattern = "2.bias", .frozen = false}});
  data::TensorSet set = samples();
  t.prepare(set);
  HostTensors before = states(t);
  t.train(set);
  EXPECT_FALSE(t.state("2.bias") == before.at("2.bias"));
  EXPECT_TRUE(t.state("2.weight") == before.at("2.weight"));
}

TEST(LoraTraining, MergedWeightsGiveTheSame) {
  nn::Lora lora{.rank = 2, .alpha = 1, .targets = {"?"}};
  Trainer t = trainer(lora);
  data::TensorSet set = samples();
  for (int k = 0; k < 5; ++k) t.train(set);
  Trainer plain(select_device("reference:0"), task(), {.batch = 32});
  plain.start_from(merged(states(t), lora), "merged");
  std::vector<float> a = t.predict(set).as<float>(), b = plain.predict(set).as<float>();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
}

TEST(LoraTraining, AdaptersComeBackFromTheirFolder) {
  Folder folder;
  nn::Lora lora{.rank = 2, .alpha = 5, .targets = {"0", "2"}}, there;
  Trainer t = trainer(lora);
  t.prepare(samples());
  HostTensors all = states(t);
  write_adapters(folder / "adapters", all, lora);
  HostTensors back = read_adapters(folder / "adapters", there);
  EXPECT_EQ(back.size(), 4u);
  for (const auto& [name, value] : back) EXPECT_TRUE(value == all.at(name)) << name;
  EXPECT_EQ(there.rank, 2);
  EXPECT_EQ(there.alpha, 5);
  EXPECT_EQ(there.targets, lora.targets);
  put(folder / "adapters/adapter_config.json", R"({"peft_type": "IA3"})");
  expect_parts(message_of([&] { read_adapters(folder / "adapters", there); }), {"adapter_config.json", "peft_type"});
}

TEST(LoraTraining, TargetsMustNameALinear) {
  auto why = [](const nn::Lora& lora) {
    return message_of([&] {
      data::TensorSet set = samples();
      trainer(lora).prepare(set);
    });
  };
  expect_parts(why({.targets = {"0", "q_proj"}}), {"no Linear of the model is named like 'q_proj'", "it has 0, 2"});
  expect_parts(why({.rank = 0, .targets = {"0"}}), {"rank 0", "at least 1"});
  expect_parts(why({.targets = {}}), {"without targets"});
}

TEST(Weights, AreTheStartAndMustFit) {
  data::TensorSet set = samples();
  Trainer t(select_device("reference:0"), task(), {.batch = 32});
  t.prepare(set);
  HostTensors all = states(t);
  for (auto& [name, value] : all) value = value.to(DType::f16);
  Trainer other(select_device("reference:0"), task(), {.batch = 32, .seed = 7});
  other.start_from(all, "half.safetensors");
  other.prepare(set);
  for (const auto& [name, value] : all) EXPECT_TRUE(other.state(name) == value.to(DType::f32)) << name;
  EXPECT_NE(message_of([&] { other.start_from(all, "again"); }).find("has run already"), std::string::npos);

  HostTensors bad = all;
  bad.erase("0.bias");
  bad["more"] = bad["2.weight"];
  bad["2.weight"] = host_tensor(DType::f32, {3, 1}, std::vector<float>(3));
  Trainer third(select_device("reference:0"), task(), {.batch = 32});
  third.start_from(bad, "bad.safetensors");
  expect_parts(message_of([&] { third.prepare(set); }),
               {"bad.safetensors", "'0.bias' is missing", "'2.weight' is f32[3, 1], the model's f32[1, 8]",
                "'more' is none of the model's"});
}

TEST(Weights, MayBeCutIntoSeveralFiles) {
  Folder folder;
  HostTensor a = host_tensor({1, 2}), b = host_tensor({3});
  write_checkpoint(folder / "m-1.safetensors", {{{"a", a}}, {}});
  write_checkpoint(folder / "m-2.safetensors", {{{"b", b}}, {}});
  std::string index = folder / "m.safetensors.index.json";
  put(index, R"({"metadata": {}, "weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}})");
  EXPECT_EQ(read_weights(index), (HostTensors{{"a", a}, {"b", b}}));
  put(index, R"({"weight_map": {"a": "m-1.safetensors", "c": "m-2.safetensors"}})");
  expect_parts(message_of([&] { read_weights(index); }), {index, "'c' is not in", "m-2.safetensors"});
  put(index, R"({"weight_map": {"a": "../m-1.safetensors"}})");
  expect_parts(message_of([&] { read_weights(index); }), {"a file of the same folder"});
  put(index, R"({"weights": {}})");
  expect_parts(message_of([&] { read_weights(index); }), {"has no weight_map"});
  put(index, R"({"weight_map": )");
  expect_parts(message_of([&] { read_weights(index); }), {"not a JSON object"});
  expect_parts(message_of([&] { read_weights(folder / "none.index.json"); }), {"cannot be read"});
}

}  // namespace
}  // namespace tutti
