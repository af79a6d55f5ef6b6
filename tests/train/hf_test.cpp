// Hugging Face's config.json: what is refused, and new heads for other classes. hf_peer.py compares the numbers.
#include <gtest/gtest.h>

#include "tests/train/files.h"
#include "train/hf/folder.h"
#include "train/run/resume.h"
#include "train/task/language_models.h"

namespace tutti {
namespace {

using test::expect_parts;
using test::message_of;

const std::string llama =
    R"("model_type": "llama", "vocab_size": 11, "hidden_size": 16, "num_attention_heads": 4, "num_hidden_layers": 2)";

std::string refusal(const std::string& more) {
  return message_of([&] { hf::read_config("{" + llama + more + "}", "x/config.json"); });
}

TEST(HfConfig, IsReadWholeOrRefused) {
  EXPECT_EQ(hf::read_config("{" + llama + "}", "config.json").name, "llama");
  EXPECT_NO_THROW(hf::read_config("{" + llama + R"(, "new_gate": null, "extras": {}, "torch_dtype": "float16"})", "c"));
  expect_parts(refusal(R"(, "new_gate": true, "twist": 3)"), {"x/config.json", "new_gate is true", "twist is 3"});
  expect_parts(refusal(R"(, "num_key_value_heads": 3)"), {"num_key_value_heads is 3", "does not divide"});
  expect_parts(refusal(R"(, "head_dim": 7)"), {"heads of 7 elements"});
  expect_parts(refusal(R"(, "intermediate_size": 1e4)"), {"intermediate_size", "integer"});
  expect_parts(refusal(R"(, "intermediate_size": 99999999999)"), {"intermediate_size", "2^31 - 1"});
  expect_parts(refusal(R"(, "rms_norm_eps": -1)"), {"rms_norm_eps is -1", "above 0"});
  expect_parts(refusal(R"(, "hidden_act": "mish")"), {"hidden_act is \"mish\"", "silu"});
  expect_parts(refusal(R"(, "is_encoder_decoder": true)"), {"is_encoder_decoder is true"});
  expect_parts(
      refusal(R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 1})"),
      {"rope_scaling", "high_freq_factor is 1", "low_freq_factor"});
  expect_parts(refusal(R"(, "rope_scaling": {"rope_type": "linear"})"), {"rope_scaling", "factor is missing"});
  expect_parts(refusal(R"(, "rope_parameters": {"rope_type": "linear", "factor": 2, "spin": 1})"), {"spin is 1"});
  expect_parts(message_of([] { hf::read_config("{\"model_type\": \"mamba\"}", "c"); }),
               {"model_type is \"mamba\"", "llama"});
  expect_parts(message_of([] { hf::read_config("{\"model_type\": ", "c"); }), {"c, byte"});
}

TEST(HfFolder, TokenizersAreReadWithLimits) {
  test::Folder f;
  const std::string deep(100'000, '[');
  f.write(
      "config.json",
      R"({"model_type": "bert", "vocab_size": 11, "hidden_size": 16, "num_attention_heads": 4, "num_hidden_layers": 1})");
  auto read = [&](const std::string& tokenizer) {
    f.write("tokenizer.json", tokenizer);
    return hf::read_folder(f.path()).text;
  };
  expect_parts(read(R"({"added_tokens": [{"id": 3, "content": "[MASK]"}]})"), {"\"mask_token_id\": 3"});
  for (const char* id : {"-1", "1.5", "[[3]]", "\"3\""})
    EXPECT_EQ(read(R"({"added_tokens": [{"content": "[MASK]", "id": )" + std::string(id) + "}]}").find("mask_token_id"),
              std::string::npos)
        << id;
  expect_parts(message_of([&] { read("{\"added_tokens\": " + deep); }), {"tokenizer.json, byte", "nested too deeply"});
  f.write("config.json", "{\"model_type\": \"bert\", \"extra\": " + deep);
  expect_parts(message_of([&] { read("{}"); }), {"config.json, byte", "nested too deeply"});
}

ModelSignature signature(int64_t classes) {
  ModelSignature s;
  auto add = [&](const char* name, Shape shape) { s.parameters.push_back({name, {DType::f32, std::move(shape)}, {}}); };
  add("body.weight", {3, 2});
  add("head.weight", {classes, 3});
  add("head.bias", {classes});
  return s;
}

HostTensors weights(int64_t width, int64_t classes) {
  auto zeros = [](Shape s) {
    auto n = static_cast<size_t>(num_elements(s));
    return host_tensor(DType::f32, std::move(s), std::vector<float>(n));
  };
  return {{"body.weight", zeros({width, 2})}, {"head.weight", zeros({classes, 3})}, {"head.bias", zeros({classes})}};
}

TEST(NewHead, OnlyWhereTheLastLayerAloneDiffers) {
  HostTensors w = weights(3, 10);
  EXPECT_EQ(drop_other_head(w, signature(5)), "head");
  EXPECT_EQ(w.size(), 1u);
  EXPECT_NO_THROW(expect_weights_of("f", w, signature(5), "head"));
  EXPECT_THROW(expect_weights_of("f", w, signature(5)), Error);
  w = weights(3, 5);
  EXPECT_EQ(drop_other_head(w, signature(5)), "");
  EXPECT_EQ(w.size(), 3u);
  w = weights(4, 10);  // another body too
  EXPECT_EQ(drop_other_head(w, signature(5)), "");
  w = weights(3, 10);
  w.erase("head.weight");
  w.emplace("head.weight", w.at("body.weight"));  // other inputs
  EXPECT_EQ(drop_other_head(w, signature(5)), "");
}

}  // namespace
}  // namespace tutti
