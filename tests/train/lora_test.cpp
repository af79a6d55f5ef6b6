// LoRA and weights from files: what is trained, what is kept, and what is said of what does not fit. PEFT is the judge
// of the numbers (lora_peer.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>

#include "data/files/checkpoint.h"
#include "nn/modules.h"
#include "tests/train/files.h"
#include "train/io/weights.h"
#include "train/run/trainer.h"

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
  return {select_device("reference:0"),
          task(),
          {.optimizer = Sgd{.lr = 0.2}, .groups = std::move(groups), .lora = lora, .batch = 32}};
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

TEST(LoraTraining, AdaptersThatAreNone) {
  Folder folder;
  auto why = [&](const std::string& config, const HostTensors& tensors) {
    put(folder / "adapter_config.json", config);
    write_checkpoint(folder / "adapter_model.safetensors", {tensors, {}});
    nn::Lora lora;
    std::string message = message_of([&] { read_adapters(folder.path(), lora); });
    expect_parts(message, {folder.path(), "PEFT"});
    return message;
  };
  auto config = [](const std::string& rank, const std::string& alpha, const std::string& targets) {
    return fmt::format(R"({{"peft_type": "LORA", "r": {}, "lora_alpha": {}, "target_modules": {}}})", rank, alpha,
                       targets);
  };
  const std::string good = config("2", "4", R"(["0"])"), a = "base_model.model.0.lora_A.weight",
                    b = "base_model.model.0.lora_B.weight";
  HostTensor two = host_tensor(DType::f32, {2, 3}, std::vector<float>(6)), one = host_tensor({1, 2, 3});
  for (const char* rank : {"0", "-1", "1.5", "1e9", "9223372036854775807", "\"2\"", "null"})
    expect_parts(why(config(rank, "4", R"(["0"])"), {{a, two}}),
                 {"adapter_config.json: \"r\" is missing or not an integer"});
  expect_parts(why(config("2", "\"4\"", R"(["0"])"), {{a, two}}), {"\"lora_alpha\""});
  expect_parts(why(config("2", "1e999", R"(["0"])"), {{a, two}}), {"adapter_config.json, byte ", "no JSON"});
  for (const char* targets : {"[]", "\"\"", "[1]", "{}", "7"})
    expect_parts(why(config("2", "4", targets), {{a, two}}), {"\"target_modules\""});
  expect_parts(why("[]", {}), {"adapter_config.json: not a JSON object"});
  expect_parts(why(good.substr(0, 30), {}), {"adapter_config.json, byte 30: the file is no JSON"});
  const std::string zero = fmt::format("adapter_config.json, byte {}: the file is no JSON: a zero byte", good.size());
  expect_parts(why(good + std::string("\0{}", 3), {}), {zero});
  expect_parts(why(good, {}), {"adapter_model.safetensors: the file has no tensors"});
  expect_parts(why(good, {{a, one}, {b, two}, {"base_model.model.0.weight", two}, {"lora_A.weight", two}}),
               {"adapter_model.safetensors: '" + a + "' is f32[3], which does not match the rank 2",
                "'" + b + "' is f32[2, 3], which does not match the rank 2",
                "'base_model.model.0.weight' is not a LoRA adapter", "'lora_A.weight' is not a LoRA adapter"});
  put(folder / "adapter_model.safetensors", "12345");
  nn::Lora lora;
  expect_parts(message_of([&] { read_adapters(folder.path(), lora); }), {"adapter_model.safetensors, byte 5"});
  expect_parts(message_of([&] { read_adapters(folder / "none", lora); }),
               {"none/adapter_config.json: there is no such"});
}

/// What a folder with that configuration gives for adapters of rank 4 of "0" and "2".
nn::Lora configured(const std::string& more) {
  Folder folder;
  put(folder / "adapter_config.json", R"({"peft_type": "LORA", "r": 4, "lora_alpha": 20, )" + more + "}");
  HostTensors tensors;
  for (const char* name : {"0.lora_A", "2.lora_A"})
    tensors.emplace(fmt::format("base_model.model.{}.weight", name),
                    host_tensor(DType::f32, {4, 2}, std::vector<float>(8)));
  for (const char* name : {"0.lora_B", "2.lora_B"})
    tensors.emplace(fmt::format("base_model.model.{}.weight", name),
                    host_tensor(DType::f32, {2, 4}, std::vector<float>(8)));
  write_checkpoint(folder / "adapter_model.safetensors", {tensors, {}});
  nn::Lora lora;
  read_adapters(folder.path(), lora);
  return lora;
}

TEST(LoraTraining, EveryKeyOfAConfigurationIsHonoured) {
  const std::string named = R"("target_modules": ["0", "2"])";
  // All that PEFT 0.21 writes by itself.
  nn::Lora plain = configured(named + R"(, "alora_invocation_tokens": null, "alpha_pattern": {}, "arrow_config": null,
    "auto_mapping": null, "base_model_name_or_path": "someone/llama", "bias": "none", "corda_config": null,
    "ensure_weight_tying": false, "eva_config": null, "exclude_modules": null, "fan_in_fan_out": true,
    "inference_mode": true, "init_lora_weights": true, "layer_replication": null, "layers_pattern": null,
    "layers_to_transform": null, "loftq_config": {}, "lora_bias": false, "lora_dropout": 0.25, "megatron_config": null,
    "megatron_core": "megatron.core", "modules_to_save": null, "peft_version": "0.21.2", "qalora_group_size": 16,
    "rank_pattern": {}, "revision": null, "target_parameters": null, "task_type": "CAUSAL_LM",
    "trainable_token_indices": null, "use_bdlora": null, "use_dora": false, "use_qalora": false, "use_rslora": false)");
  EXPECT_EQ(plain.alpha, 20);
  EXPECT_EQ(plain.dropout, 0.25);
  EXPECT_EQ(plain.targets, (std::vector<std::string>{"0", "2"}));
  EXPECT_EQ(configured(named + R"(, "use_rslora": true)").alpha, 40);  // 20 / sqrt(4) = 40 / 4
  for (const char* targets : {R"("all-linear")", R"(".*\\.?[02]")", "null", R"(["x.0", "2"])"})
    EXPECT_EQ(configured(std::string(R"("target_modules": )") + targets).targets, (std::vector<std::string>{"0", "2"}))
        << targets;
  for (const char* some :
       {R"("exclude_modules": ["1"])", R"("layers_to_transform": [0, 2])", R"("layers_pattern": "layers")"})
    EXPECT_EQ(configured(R"("target_modules": ["*"], )" + std::string(some)).targets,
              (std::vector<std::string>{"0", "2"}));
  for (const char* init : {"true", "false", "null", R"("gaussian")", R"("eva")", R"("orthogonal")"})
    configured(named + R"(, "init_lora_weights": )" + init);
}

TEST(LoraTraining, WhatAConfigurationAsksForAndWeLackIsRefusedByName) {
  const std::string named = R"("target_modules": ["0", "2"], )";
  const std::pair<const char*, const char*> keys[] = {{"alpha_pattern", R"({"0": 10})"},
                                                      {"rank_pattern", R"({"0": 8})"},
                                                      {"use_dora", "true"},
                                                      {"bias", R"("all")"},
                                                      {"bias", R"("lora_only")"},
                                                      {"modules_to_save", R"(["lm_head"])"},
                                                      {"lora_bias", "true"},
                                                      {"trainable_token_indices", "[0, 1]"},
                                                      {"layer_replication", "[[0, 2]]"},
                                                      {"target_parameters", R"(["experts"])"},
                                                      {"init_lora_weights", R"("pissa_niter_4")"},
                                                      {"init_lora_weights", R"("loftq")"},
                                                      {"init_lora_weights", R"("olora")"},
                                                      {"loftq_config", R"({"loftq_bits": 4})"},
                                                      {"use_qalora", "true"},
                                                      {"alora_invocation_tokens", "[1]"},
                                                      {"an_option_of_tomorrow", "0.5"}};
  for (const auto& k : keys)
    expect_parts(message_of([&] { configured(fmt::format("{}\"{}\": {}", named, k.first, k.second)); }),
                 {"adapter_config.json: unsupported LoRA setting: \"" + std::string(k.first) + "\" is ", "merge"});
  expect_parts(message_of([&] { configured(named + R"("use_dora": true, "lora_bias": true)"); }),
               {"\"lora_bias\" is true; \"use_dora\" is true"});
  for (const char* bad :
       {R"("use_rslora": "yes")", R"("use_rslora": 1)", R"("lora_dropout": 1)", R"("lora_dropout": "0")"})
    expect_parts(message_of([&] { configured(named + bad); }), {"adapter_config.json: \"", "is missing or not"});
}

TEST(LoraTraining, TargetsMustNameALinear) {
  auto why = [](const nn::Lora& lora) {
    return message_of([&] {
      data::TensorSet set = samples();
      trainer(lora).prepare(set);
    });
  };
  expect_parts(why({.targets = {"0", "q_proj"}}),
               {"no Linear module of the model matches 'q_proj'", "its Linear modules are 0, 2"});
  expect_parts(why({.rank = 0, .targets = {"0"}}), {"rank is 0", "at least 1"});
  expect_parts(why({.targets = {}}), {"no target modules"});
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
               {"bad.safetensors", "'0.bias' is missing", "'2.weight' is f32[3, 1], but in the model it is f32[1, 8]",
                "'more' is not a parameter of the model"});
  // Integers are quants of some scheme, not weights.
  for (DType integers : {DType::i32, DType::u8, DType::i64}) {
    HostTensors quants = all;
    quants["2.weight"] = quants["2.weight"].to(integers);
    Trainer fourth(select_device("reference:0"), task(), {.batch = 32});
    fourth.start_from(quants, "int8.safetensors");
    expect_parts(message_of([&] { fourth.prepare(set); }),
                 {"int8.safetensors", "'2.weight' is ", "in the model it is f32[1, 8]"});
  }
}

TEST(Weights, ListsOfWhatDoesNotFitAreCut) {
  data::TensorSet set = samples();
  HostTensors bad;
  for (int i = 0; i < 30; ++i) bad.emplace(fmt::format("w{:02}", i), host_tensor({1}));
  Trainer t(select_device("reference:0"), task(), {.batch = 32});
  t.start_from(bad, "bad.safetensors");
  std::string message = message_of([&] { t.prepare(set); });  // 4 are missing, 30 unknown
  expect_parts(message, {"'0.bias' is missing", "'w15' is not a parameter of the model; and 14 more"});
  EXPECT_EQ(message.find("'w16'"), std::string::npos) << message;
}

/// What those tensors are called as read from a file.
std::vector<std::string> names_of(const HostTensors& tensors) {
  Folder folder;
  write_checkpoint(folder / "w.safetensors", {tensors, {}});
  std::vector<std::string> names;
  for (const auto& [name, t] : read_weights(folder / "w.safetensors")) names.push_back(name);
  return names;
}

// The numbers are judged by weights_peer.py.
TEST(Weights, HaveOurNamesWhoeverWroteThem) {
  using Names = std::vector<std::string>;
  HostTensor a = host_tensor({1, 2}), b = host_tensor({3, 4});
  EXPECT_EQ(names_of({{"bn1.running_mean", a}, {"bn1.num_batches_tracked", b}, {"own.num_batches_tracked", b}}),
            (Names{"bn1.running_mean", "own.num_batches_tracked"}));
  EXPECT_EQ(names_of({{"wte.weight", a}, {"h.0.attn.bias", b}, {"h.0.attn.c_attn.bias", b}}),
            (Names{"transformer.h.0.attn.c_attn.bias", "transformer.wte.weight"}));
  EXPECT_EQ(names_of({{"transformer.wte.weight", a}, {"transformer.h.11.attn.masked_bias", b}, {"lm_head.weight", a}}),
            Names{"transformer.wte.weight"});
  EXPECT_EQ(names_of({{"embed_tokens.weight", a}, {"layers.0.self_attn.rotary_emb.inv_freq", b}, {"norm.weight", b}}),
            (Names{"model.embed_tokens.weight", "model.norm.weight"}));
  EXPECT_EQ(names_of({{"h.0.attn.bias", a}, {"lm_head.weight", b}}), (Names{"h.0.attn.bias", "lm_head.weight"}))
      << "no family that is known";
  expect_parts(message_of([&] {
                 names_of({{"model.embed_tokens.weight", a}, {"lm_head.weight", b}});
               }),
               {"w.safetensors: 'lm_head.weight' differs from 'model.embed_tokens.weight'", "tied"});
}

TEST(Weights, MayBeCutIntoSeveralFiles) {
  Folder folder;
  HostTensor a = host_tensor({1, 2}), b = host_tensor({3});
  write_checkpoint(folder / "m-1.safetensors", {{{"a", a}}, {}});
  write_checkpoint(folder / "m-2.safetensors", {{{"b", b}}, {}});
  std::string index = folder / "m.safetensors.index.json";
  put(index, R"({"metadata": {}, "weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}})");
  EXPECT_EQ(read_weights(index), (HostTensors{{"a", a}, {"b", b}}));

  auto why = [&](const std::string& text) {
    put(index, text);
    std::string message = message_of([&] { read_weights(index); });
    EXPECT_NE(message.find(folder.path()), std::string::npos) << message;
    EXPECT_FALSE(message.ends_with(" | ")) << "no remedy: " << message;
    return message;
  };
  expect_parts(why(R"({"weight_map": {"a": "m-1.safetensors", "c": "m-2.safetensors", "d": "m-1.safetensors"}})"),
               {index, "'c' is not in", "m-2.safetensors", "'d' is not in"});
  expect_parts(why(R"({"weight_map": {"a": "m-2.safetensors", "b": "m-1.safetensors"}})"),
               {"'a' is not in", "'b' is not in"});
  for (const char* outside : {"../m-1.safetensors", "/m-1.safetensors", "x/m-1.safetensors"})
    expect_parts(why(fmt::format(R"({{"weight_map": {{"a": "{}"}}}})", outside)),
                 {outside, "a file in the same folder"});
  expect_parts(why(R"({"weight_map": {"a": 7}})"), {"weight_map contains 7"});
  expect_parts(why(R"({"weight_map": {"a": ""}})"), {"weight_map contains \"\""});
  expect_parts(why(R"({"weight_map": {"a": ".."}})"), {"weight_map contains \"..\""});
  expect_parts(why(R"({"weight_map": {"a": "none.safetensors"}})"), {"none.safetensors: there is no such"});
  expect_parts(why(R"({"weight_map": {"a": "m-1.safetensors", "a": "m-2.safetensors"}})"),
               {"byte ", "contains the key 'a' twice"});
  expect_parts(why(R"({"weight_map": ["a"]})"), {"weight_map is missing"});
  expect_parts(why(R"({"weights": {}})"), {"weight_map is missing"});
  expect_parts(why(R"({"weight_map": {}})"), {"weight_map is empty"});
  expect_parts(why(R"({"weight_map": )"), {"byte 15", "is no JSON"});
  expect_parts(why(""), {"byte 0", "is no JSON"});
  expect_parts(why("[]"), {"not a JSON object"});
  expect_parts(why(std::string(100000, '[')), {"nested too deeply"});
  write_checkpoint(folder / "m-2.safetensors", {{{"a", a}, {"b", b}}, {}});
  expect_parts(why(R"({"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}})"), {"'a' occurs twice"});
  put(folder / "m-2.safetensors", test::get(folder / "m-2.safetensors").substr(0, 100));
  expect_parts(why(R"({"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}})"),
               {"m-2.safetensors, byte 100"});
  expect_parts(message_of([&] { read_weights(folder / "none.index.json"); }),
               {"none.index.json: there is no such file"});
}

}  // namespace
}  // namespace tutti
