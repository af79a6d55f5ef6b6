// Language models from GGUF files.
#include "train/io/gguf_decoder.h"
#include "data/files/checkpoint.h"

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "data/file.h"
#include "tests/data/gguf_bytes.h"
#include "tests/data/smollm2.h"
#include "tests/train/files.h"
#include "train/step/programs.h"
#include "train/task/model.h"

namespace tutti {
namespace {

using namespace tutti::test;

const std::string golden = std::string(GOLDEN_DIR) + "/gguf";

TEST(GgufDecoder, WeightsAreHuggingFaces) {
  Gguf g(golden + "/llama.gguf");
  nn::DecoderOptions expected{
      .vocabulary = 11, .layers = 2, .width = 16, .hidden = 24, .heads = 4, .kv_heads = 2, .head = 4};
  EXPECT_EQ(gguf_decoder(g).options, expected);
  EXPECT_EQ(gguf_decoder(g).context, 6);
  EXPECT_EQ(gguf_weights(g), read_checkpoint(golden + "/llama.safetensors").tensors);
}

TEST(GgufDecoder, NamesAndShapesAreOurModels) {
  const ModelDef& m = find_model("llama");
  ModelOptions options;
  options.size = "tiny";
  data::Sources sources = data::open_data(m.synthetic(options, 2), {.context = m.context(options)});
  Programs programs(m.task(options, *sources.train), {.optimizer = optimizer_named(m.optimizer)});
  HostTensors c = gguf_weights(Gguf(golden + "/llama.gguf"));
  std::vector<nn::Parameter> parameters = programs.declare(layout_of(*sources.train, "train", true)).parameters;
  EXPECT_EQ(parameters.size(), c.size());
  for (const nn::Parameter& p : parameters) {
    ASSERT_TRUE(c.count(p.name)) << p.name;
    EXPECT_EQ(c.at(p.name).type, p.type) << p.name;
  }
}

// The tiny model with some metadata exchanged, its list of tensors and their numbers as they are.
std::string changed(const std::string& key, const std::string& value) {
  std::string bytes = get(golden + "/llama.gguf");
  size_t at = bytes.find(gguf_text(key));
  EXPECT_NE(at, std::string::npos) << key;
  return bytes.replace(at + 8 + key.size() + 4, value.size(), value);
}

TEST(GgufDecoder, WhatIsWrongIsNamed) {
  Folder f;
  auto error = [&](const std::string& bytes) {
    std::string path = f.write("l.gguf", bytes);
    return message_of([&] { gguf_decoder(Gguf(path)); });
  };
  auto facts = [&](const std::string& key, uint32_t n) { return error(changed("llama." + key, u32(n))); };
  expect_parts(error(changed("general.architecture", gguf_text("mamba"))),
               {"l.gguf, byte ", "is 'mamba', expected one of llama, qwen2"});
  expect_parts(facts("block_count", 3), {"l.gguf: tensor 'blk.2.attn_norm.weight' is missing", "3 layers"});
  expect_parts(facts("block_count", 1), {"l.gguf, byte ", "tensor 'blk.1.", "does not belong to this model"});
  expect_parts(facts("block_count", 0x7fffffff), {"'llama.block_count' is 2147483647, expected at most 10000"});
  expect_parts(facts("block_count", 0), {"'llama.block_count' is 0, expected 1 to 2^31 - 1"});
  expect_parts(facts("block_count", 0xffffffff), {"4294967295"});
  expect_parts(facts("embedding_length", 32), {"is 4, expected the head size 8"});
  expect_parts(facts("feed_forward_length", 25), {"'blk.0.ffn_gate.weight' is [24, 16], expected [25, 16]"});
  expect_parts(facts("attention.head_count", 5), {"5 heads for an embedding size of 16"});
  expect_parts(facts("attention.head_count", 16), {"16 heads for an embedding size of 16"});
  expect_parts(facts("attention.head_count_kv", 3), {"3 key-value heads do not divide the 4 heads"});
  expect_parts(facts("rope.dimension_count", 2), {"'llama.rope.dimension_count' is 2, expected the head size 4"});
  for (uint32_t bits : {0u, 0x80000000u, 0x7fc00000u, 0x7f800000u})
    expect_parts(facts("rope.freq_base", bits), {"'llama.rope.freq_base' is", "above 0"});
  for (const char* key : {"attention.head_count", "attention.head_count_kv"})
    expect_parts(facts(key, 0), {"l.gguf, byte ", "is 0, expected 1 to 2^31 - 1"});
  double tiny = 1e-310;  // which text to number conversions take for an error
  std::vector<std::string> eps = {metadatum("general.architecture", gguf_string, gguf_text("llama")),
                                  metadatum("llama.attention.layer_norm_rms_epsilon", 12, little_endian(tiny))};
  for (const char* key : {"block_count", "context_length", "embedding_length", "feed_forward_length"})
    eps.push_back(metadatum(std::string("llama.") + key, gguf_u32, u32(4)));
  eps.push_back(metadatum("llama.attention.head_count", gguf_u32, u32(1)));
  expect_parts(error(gguf_file(eps)), {"tensor 'token_embd.weight' is missing"});
  expect_parts(error(gguf_file({})), {"metadata 'general.architecture' is missing"});
  std::string bytes = get(golden + "/llama.gguf");
  bytes.replace(bytes.find("output_norm.weight"), 11, "output_xxxx");
  expect_parts(error(bytes), {"tensor 'output_norm.weight' is missing"});
}

TEST(GgufDecoder, RopeAndUnknownMetadataAreHonouredOrRefused) {
  Folder f;
  auto rotary = [&](const std::vector<std::string>& more) {
    std::string bytes = get(golden + "/llama.gguf");
    size_t data = bytes.size() - Gguf(golden + "/llama.gguf").tensors()[0].at;  // all tensors, in the file's order
    std::string head = bytes.substr(0, bytes.size() - data), tail = bytes.substr(bytes.size() - data);
    uint64_t count = 0;
    std::memcpy(&count, head.data() + 16, sizeof count);
    head.replace(16, 8, u64(count + more.size()));
    std::string all;
    for (const std::string& m : more) all += m;
    head.insert(24, all);
    head.resize((head.size() + 31) / 32 * 32);
    return gguf_decoder(Gguf(f.write("l.gguf", head + tail))).options.rotary;
  };
  auto text = [](const char* key, const char* value) {
    return metadatum(std::string("llama.") + key, gguf_string, gguf_text(value));
  };
  auto real = [](const char* key, float x) {
    return metadatum(std::string("llama.") + key, gguf_f32, little_endian(x));
  };
  auto whole = [](const char* key, uint32_t x) { return metadatum(std::string("llama.") + key, gguf_u32, u32(x)); };
  using Scaling = nn::Rotary::Scaling;
  EXPECT_EQ(rotary({text("rope.scaling.type", "none")}), nn::Rotary{});
  nn::Rotary linear{.scaling = Scaling::linear, .factor = 4};
  EXPECT_EQ(rotary({text("rope.scaling.type", "linear"), real("rope.scaling.factor", 4)}), linear);
  EXPECT_EQ(rotary({real("rope.scale_linear", 4)}), linear);
  nn::Rotary yarn{.scaling = Scaling::yarn, .factor = 4, .original = 3, .magnitude = 0.1 * std::log(4.0) + 1};
  EXPECT_EQ(rotary({text("rope.scaling.type", "yarn"), real("rope.scaling.factor", 4),
                    whole("rope.scaling.original_context_length", 3)}),
            yarn);
  auto error = [&](const std::string& m) { return message_of([&] { rotary({m}); }); };
  expect_parts(error(text("rope.scaling.type", "su")),
               {"'llama.rope.scaling.type' is 'su', expected none, linear, yarn"});
  expect_parts(error(text("rope.scaling.type", "yarn")), {"'llama.rope.scaling.original_context_length' is missing"});
  expect_parts(error(whole("expert_count", 8)), {"'llama.expert_count' is 8, expected 0"});
  expect_parts(error(real("logit_scale", 2)), {"metadata 'llama.logit_scale' (2) is not supported"});
  expect_parts(error(whole("attention.sliding_window", 3)), {"'llama.attention.sliding_window' is 3, expected none"});
  expect_parts(error(whole("attention.value_length", 8)),
               {"'llama.attention.value_length' is 8, expected the head size 4"});
}

TEST(GgufDecoder, SmolLm2s) {
  std::string file = smollm2();
  if (file.empty()) GTEST_SKIP() << "scripts/smollm2.sh fetches it";
  Gguf g(file);
  nn::DecoderOptions expected{.vocabulary = 49152,
                              .layers = 30,
                              .width = 576,
                              .hidden = 1536,
                              .heads = 9,
                              .kv_heads = 3,
                              .head = 64,
                              .rotary = {.base = 100000}};
  EXPECT_EQ(gguf_decoder(g).options, expected);
  EXPECT_EQ(gguf_decoder(g).context, 8192);
  auto weights = nlohmann::json::parse(data::read_file(golden + "/smollm2.json", ""))["weights"];
  ASSERT_EQ(weights.size(), 11u);
  for (const auto& [name, w] : weights.items()) {
    SCOPED_TRACE(name);
    const GgufTensor* t = g.find_tensor(name);
    ASSERT_TRUE(t);
    EXPECT_EQ(t->shape, w["shape"].get<Shape>());
    std::vector<float> x = g.read(*t).as<float>();
    double sum = 0, squares = 0;
    for (float v : x) {
      sum += v;
      squares += double{v} * v;
    }
    EXPECT_NEAR(sum, w["sum"].get<double>(), 1e-9 * squares);
    EXPECT_NEAR(squares, w["squares"].get<double>(), 1e-9 * squares);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(x[i], w["first"][i].get<float>());
  }
  int64_t parameters = 0;
  for (const auto& [name, w] : gguf_weights(g)) parameters += num_elements(w.type.shape);
  EXPECT_EQ(parameters, 134515008);
}

}  // namespace
}  // namespace tutti
