// Language models written as GGUF files, and read again.
#include "train/io/gguf_export.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "data/files/gguf_quantize.h"
#include "data/gguf_tokenizer.h"
#include "data/gguf_tokenizer_write.h"
#include "data/hf_tokenizer.h"
#include "tests/train/files.h"
#include "train/io/decoder_facts.h"

namespace tutti {
namespace {

using namespace tutti::test;
using nn::Rotary;

HostTensor noise(const Shape& shape, uint32_t seed) {
  std::vector<float> x(static_cast<size_t>(num_elements(shape)));
  for (float& v : x) {
    double sum = -6;  // of 12 uniform numbers: nearly normal
    for (int k = 0; k < 12; ++k) sum += (seed = seed * 1664525u + 1013904223u) / 0x1p32;
    v = static_cast<float>(0.1 * sum);
  }
  return host_tensor(DType::f32, shape, x);
}

HostTensors weights_of(const GgufDecoder& m) {
  HostTensors all;
  uint32_t seed = 1;
  each_weight(m, [&](const GgufWeight& w) { all.emplace(w.to, noise(w.shape, ++seed)); });
  return all;
}

GgufDecoder made(nn::DecoderOptions more) {
  more.vocabulary = 40;
  more.layers = 2;
  more.width = 256;
  more.hidden = 96;
  more.heads = 4;
  more.kv_heads = 2;
  if (more.head == 0) more.head = 64;
  return {.architecture = gguf_architecture(more), .options = std::move(more), .context = 32};
}

const GgufType& type(const std::string& name) {
  for (const GgufType* t : writable_gguf_types())
    if (t->name == name) return *t;
  throw invalid("no type " + name);
}

TEST(GgufExport, ComesBack) {
  Folder f;
  std::vector<double> factors(32, 1);
  for (size_t i = 16; i < 32; ++i) factors[i] = 8;
  using Scaling = Rotary::Scaling;
  const nn::DecoderOptions variants[] = {
      {.tied = true},
      {.eps = 1e-6, .tied = false, .rotary = {.base = 500000}},
      {.qkv_bias = true},
      {.head = 32, .tied = false, .head_norms = true},
      {.qkv_bias = true, .output_bias = true, .mlp_bias = true},
      {.rotary = {.scaling = Scaling::linear, .factor = 4}},
      {.rotary =
           {.scaling = Scaling::yarn, .factor = 4, .original = 8, .magnitude = 0.1 * std::log(4.0) + 1, .fast = 16}},
      {.rotary = {.scaling = Scaling::longrope, .short_factors = factors, .long_factors = factors}},
      {.rotary = {.scaling = Scaling::longrope,
                  .original = 8,
                  .magnitude = 1.25,
                  .short_factors = std::vector<double>(32, 1),
                  .long_factors = factors}},
      {.fused = true, .window = 8, .sliding = {true, true}},
      {.activation = "gelu_tanh", .unit_norms = true, .embedding_scale = 16},
      {.activation = "gelu_tanh",
       .unit_norms = true,
       .result_norms = true,
       .embedding_scale = 16,
       .score_cap = 20,
       .logit_cap = 10,
       .window = 8,
       .sliding = {true, false}},
      {.activation = "gelu_tanh",
       .head_norms = true,
       .unit_norms = true,
       .result_norms = true,
       .embedding_scale = 16,
       .rotary = {.base = 1e6},
       .window = 8,
       .sliding = {true, true},
       .sliding_rotary = Rotary{}}};
  const char* expected[] = {"llama", "llama", "qwen2", "qwen3", "llama",  "llama", "llama",
                            "llama", "llama", "phi3",  "gemma", "gemma2", "gemma3"};
  size_t k = 0;
  for (const nn::DecoderOptions& v : variants) {
    SCOPED_TRACE(k);
    GgufDecoder m = made(v);
    EXPECT_EQ(m.architecture, expected[k++]);
    HostTensors w = weights_of(m);
    write_gguf(f / "m.gguf", gguf_export(m, w, "m", type("f32"), {}).contents);
    Gguf file(f / "m.gguf");
    m.options.name = decoder_facts(m.architecture).name;
    for (auto& [name, t] : w)  // files store 1 + weight
      if (m.options.unit_norms && name.ends_with("norm.weight"))
        for (size_t i = 0; i < static_cast<size_t>(num_elements(t.type.shape)); ++i)
          store_element(DType::f32, t.bytes.data(), i, static_cast<float>(t.item(i)) + 1.0f);
    m.options.unit_norms = false;
    GgufDecoder back = gguf_decoder(file);
    EXPECT_EQ(back.options, m.options);
    EXPECT_EQ(back.context, 32);
    EXPECT_TRUE(gguf_weights(file) == w);
    write_gguf(f / "again.gguf", gguf_export(back, w, "m", type("f32"), {}, &file).contents);
    Gguf again(f / "again.gguf");  // its metadata are in another order
    for (const auto& [key, value] : file.metadata()) EXPECT_TRUE(again.find(key)->bytes() == value.bytes()) << key;
    EXPECT_TRUE(gguf_weights(again) == w);
    EXPECT_EQ(gguf_decoder(again).options, m.options);
  }
}

TEST(GgufExport, Llama3sScalingBecomesFactors) {
  Folder f;
  Rotary r{.base = 500000, .scaling = Rotary::Scaling::llama3, .factor = 8, .original = 32};
  GgufDecoder m = made({.rotary = r});
  write_gguf(f / "m.gguf", gguf_export(m, weights_of(m), "m", type("f32"), {}).contents);
  std::vector<double> want = r.frequencies(64, 100);
  std::vector<double> got = gguf_decoder(Gguf(f / "m.gguf")).options.rotary.frequencies(64, 100);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i] / want[i], 1, 1e-6) << i;
}

double error_of(const HostTensor& a, const HostTensor& b) {
  double sum = 0;
  for (size_t i = 0; i < static_cast<size_t>(num_elements(a.type.shape)); ++i)
    sum += std::pow(a.item(i) - b.item(i), 2);
  return std::sqrt(sum / static_cast<double>(num_elements(a.type.shape)));
}

TEST(GgufExport, MatricesOfOtherTypes) {
  Folder f;
  GgufDecoder m = made({});
  HostTensors w = weights_of(m);
  for (const char* name : {"f16", "bf16", "q8_0", "q4_k"}) {
    SCOPED_TRACE(name);
    GgufExport out = gguf_export(m, w, "m", type(name), {});
    write_gguf(f / "m.gguf", out.contents);
    Gguf file(f / "m.gguf");
    auto stored = [&](const char* tensor) { return std::string(file.find_tensor(tensor)->type->name); };
    bool q4 = name == std::string("q4_k");
    EXPECT_EQ(stored("blk.0.attn_q.weight"), name);
    EXPECT_EQ(stored("token_embd.weight"), q4 ? "q8_0" : name);
    EXPECT_EQ(stored("blk.1.ffn_down.weight"), q4 ? "q8_0" : name) << "rows of 96";
    EXPECT_EQ(stored("output_norm.weight"), "f32");
    EXPECT_EQ(out.notes.empty(), !q4);
    HostTensors back = gguf_weights(file);
    const std::string q = "model.layers.0.self_attn.v_proj.weight";
    double error = error_of(back.at(q), w.at(q));
    if (name == std::string("f16") || name == std::string("bf16")) {
      DType dtype = name == std::string("f16") ? DType::f16 : DType::bf16;
      EXPECT_EQ(back.at(q), w.at(q).to(dtype).to(DType::f32));
      continue;
    }
    // q4_k beside blocks of 5 bits per number
    EXPECT_LT(error, q4 ? 0.95 * error_of(dequantized(quantized(w.at(q), 4)), w.at(q)) : 1e-3);
  }
}

TEST(GgufExport, BlocksAtTheEdges) {
  auto round = [](const std::vector<float>& x, const char* name) {
    std::string bytes = gguf_bytes(host_tensor(DType::f32, {1, std::ssize(x)}, x), type(name), "w");
    std::vector<float> y(x.size());
    type(name).read(reinterpret_cast<const std::byte*>(bytes.data()), x.size() / type(name).block, y.data());
    return y;
  };
  for (float constant : {0.f, 1.f, -1.f, 1e-30f}) {
    std::vector<float> x(256, constant);
    for (float y : round(x, "q4_k")) EXPECT_NEAR(y, constant, 0.01 * std::abs(constant) + 1e-7);
    for (float y : round(x, "q8_0")) EXPECT_NEAR(y, constant, 0.01 * std::abs(constant) + 1e-7);
  }
  std::vector<float> x(256, 1);
  for (float bad : {NAN, INFINITY, 1e30f}) {
    x[7] = bad;
    for (const char* name : {"f16", "q8_0", "q4_k"})
      expect_parts(message_of([&] { round(x, name); }), {"tensor 'w' has elements near index", name});
  }
}

TEST(GgufExport, ModelsWithoutArchitectureAreRefused) {
  auto error = [](nn::DecoderOptions o) {
    o.width = o.head = 16;
    o.heads = 1;
    return message_of([&] { gguf_architecture(o); });
  };
  expect_parts(error({.activation = "gelu"}), {"Llama: the activation gelu cannot be written as GGUF"});
  expect_parts(error({.logit_cap = 30}), {"capped"});
  expect_parts(error({.layers = 1, .window = 4, .sliding = {true}}), {"sliding window"});
  expect_parts(error({.head_norms = true, .result_norms = true}), {"these norms"});
  expect_parts(error({.qkv_bias = true, .fused = true}), {"biases of phi3"});
  expect_parts(error({.embedding_scale = 2}), {"scale of embeddings"});
  expect_parts(error({.score_scale = 0.3}), {"scale of scores"});
  expect_parts(error({.rotary = {.scaling = Rotary::Scaling::dynamic}}), {"'dynamic'"});
}

/// A tokenizer.json of GPT-2's vocabulary in the tests, with a special token, which begins texts and ends them.
nlohmann::json folder_tokenizer() {
  data::Bpe own(std::string(GOLDEN_DIR) + "/bpe");
  nlohmann::json j = {{"model", {{"type", "BPE"}, {"merges", own.merges()}, {"ignore_merges", false}}}};
  std::vector<std::string> tokens = own.tokens();
  for (size_t i = 0; i < tokens.size(); ++i) j["model"]["vocab"][tokens[i]] = i;
  const size_t special = tokens.size();
  j["added_tokens"] = {{{"id", special}, {"content", "<|end|>"}, {"special", true}, {"normalized", false}}};
  j["decoder"] = {{"type", "ByteLevel"}};
  j["post_processor"] = {{"type", "TemplateProcessing"},
                         {"single", {{{"SpecialToken", {{"id", "<|end|>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
                         {"special_tokens", {{"<|end|>", {{"ids", {special}}}}}}};
  return j;
}

nlohmann::json split_by(const std::string& regex) {
  return {{"type", "Sequence"},
          {"pretokenizers",
           {{{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}},
            {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
}

/// That tokenizer.json as metadata, which must give the ids of the folder, and its notes.
std::vector<std::string> as_gguf(const nlohmann::json& j, const std::string& pre, bool begins = true) {
  Folder f;
  f.write("tokenizer.json", j.dump());
  f.write("config.json", R"({"eos_token_id": 3})");
  f.write("tokenizer_config.json", R"({"chat_template": "{{ messages }}"})");
  std::vector<std::string> notes;
  const data::HfTokenizer own(f.path());
  write_gguf(f / "t.gguf", {data::gguf_tokenizer("hf:" + f.path(), "", own.size() + 2, notes), {}});
  const Gguf file(f / "t.gguf");
  const data::GgufTokenizer back(file);
  EXPECT_EQ(file.text("tokenizer.ggml.pre"), pre);
  EXPECT_EQ(back.size(), own.size() + 2);
  EXPECT_EQ(back.adds_begin(), begins);
  EXPECT_EQ(back.ends(), (std::set<int32_t>{3}));
  EXPECT_EQ(back.chat_template(), "{{ messages }}");
  for (const char* text : {"The quick brown fox's 1234567 tests", "na\u00efve\n\n  x <|end|> it'S 5", "", " \t a "}) {
    if (j["added_tokens"][0].value("lstrip", false) && *text == 'n') continue;  // the note says that they differ
    std::vector<int32_t> ids = back.encode(text, "");
    if (begins) ids.insert(ids.begin(), *back.begin());
    EXPECT_EQ(ids, own.encode(text, "")) << pre << ": " << text;
    EXPECT_EQ(back.decode(ids), own.decode(ids)) << pre << ": " << text;
  }
  return notes;
}

TEST(GgufExport, TokenizersOfFolders) {
  nlohmann::json j = folder_tokenizer();
  const nlohmann::json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  j["pre_tokenizer"] = bytes;
  EXPECT_TRUE(as_gguf(j, "gpt-2").empty());
  j["pre_tokenizer"] = {{"type", "Sequence"},
                        {"pretokenizers", {{{"type", "Digits"}, {"individual_digits", true}}, bytes}}};
  EXPECT_TRUE(as_gguf(j, "smollm").empty());
  // As in the files of Llama 3 and Qwen 2.
  const std::string words = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)",
                    rest = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  j["pre_tokenizer"] = split_by(words + R"(\p{N})" + rest);
  j["normalizer"] = {{"type", "NFC"}};
  const std::vector<std::string> notes = as_gguf(j, "qwen2");
  ASSERT_EQ(notes.size(), 1u);
  expect_parts(notes[0], {"NFC"});
  j["normalizer"] = nullptr;
  j["pre_tokenizer"] = split_by(words + R"(\p{N}{1,3})" + rest);
  expect_parts(message_of([&] { as_gguf(j, ""); }), {"ignore_merges is false, but llama-bpe's is true"});
  j["model"]["ignore_merges"] = true;
  EXPECT_TRUE(as_gguf(j, "llama-bpe").empty());
  j["added_tokens"][0]["lstrip"] = true;
  EXPECT_EQ(as_gguf(j, "llama-bpe").size(), 1u);
  for (const auto& [key, value] : std::map<std::string, nlohmann::json>{{"normalizer", {{"type", "Lowercase"}}},
                                                                        {"pre_tokenizer", split_by("x")}}) {
    nlohmann::json other = j;
    other[key] = value;
    expect_parts(message_of([&] { as_gguf(other, ""); }), {"tokenizer.json: " + key, "no such tokenizer"});
  }
}

TEST(GgufExport, SentencePiecesOfFolders) {
  nlohmann::json j = {{"model",
                       {{"type", "BPE"},
                        {"byte_fallback", true},
                        {"fuse_unk", true},
                        {"unk_token", "<unk>"},
                        {"merges", {"l o", "\u2581 lo", "w e", "we r", "e r", "w er"}}}},
                      {"added_tokens", {{{"id", 0}, {"content", "<unk>"}, {"special", true}, {"normalized", false}}}},
                      {"normalizer",
                       {{"type", "Sequence"},
                        {"normalizers",
                         {{{"type", "Prepend"}, {"prepend", "\u2581"}},
                          {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}}},
                      {"decoder",
                       {{"type", "Sequence"},
                        {"decoders",
                         {{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
                          {{"type", "ByteFallback"}},
                          {{"type", "Fuse"}},
                          {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}}};
  std::vector<std::string> tokens = {"<unk>"};
  for (int b = 0; b < 256; ++b) tokens.push_back(fmt::format("<0x{:02X}>", b));
  for (const char* t : {"\u2581", "l", "o", "w", "e", "r", "lo", "\u2581lo", "we", "wer", "er"}) tokens.emplace_back(t);
  for (size_t i = 0; i < tokens.size(); ++i) j["model"]["vocab"][tokens[i]] = i;
  // "we r" and "w er" give one token but do not follow each other
  expect_parts(message_of([&] { as_gguf(j, "", false); }), {"merges[5]", "do not follow each other"});
  j["model"]["merges"] = {"l o", "\u2581 lo", "w e", "e r", "we r"};
  expect_parts(message_of([&] { as_gguf(j, "", false); }), {"no merge of 'w' and 'er'"});
  j["model"]["merges"] = {"l o", "\u2581 lo", "w e", "e r", "we r", "w er"};
  EXPECT_TRUE(as_gguf(j, "default", false).empty());
  j["normalizer"] = {{"type", "NFKC"}};
  expect_parts(message_of([&] { as_gguf(j, "", false); }), {"NFKC", "no such tokenizer"});
}

TEST(GgufExport, Tokenizers) {
  Folder f;
  auto round = [&](const std::string& name, const std::string& characters, int64_t vocabulary) {
    std::vector<std::string> notes;
    write_gguf(f / "t.gguf", {data::gguf_tokenizer(name, characters, vocabulary, notes), {}});
    EXPECT_TRUE(notes.empty());
    return data::GgufTokenizer(Gguf(f / "t.gguf"));
  };
  using Tokens = std::vector<int32_t>;
  data::GgufTokenizer chars = round("chars", "\n abc", 7);
  EXPECT_EQ(chars.size(), 7);
  EXPECT_EQ(chars.encode("cab a\n", ""), (Tokens{4, 2, 3, 1, 2, 0}));
  EXPECT_EQ(chars.decode(Tokens{4, 1, 0}), "c \n");
  data::GgufTokenizer bytes = round("bytes", "", 256);
  EXPECT_EQ(bytes.encode("a\xc3\xa4", ""), (Tokens{97, 195, 164}));
  const std::string folder = std::string(GOLDEN_DIR) + "/bpe";
  data::Bpe own(folder);
  data::GgufTokenizer bpe = round("bpe:" + folder, "", own.size());
  for (const char* text : {"The quick brown fox's 123 tests", "naïve\n\n  x"})
    EXPECT_EQ(bpe.encode(text, ""), own.encode(text, ""));
  std::vector<std::string> notes;
  expect_parts(message_of([&] { data::gguf_tokenizer("chars", "aä", 2, notes); }), {"the character 'ä'", "bytes"});
}

}  // namespace
}  // namespace tutti
