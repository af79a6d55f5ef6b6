// The tokenizer of GGUF files, against Hugging Face's tokenizers.
#include "data/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "data/file.h"
#include "tests/data/gguf_bytes.h"
#include "tests/data/smollm2.h"
#include "tests/train/files.h"

namespace tutti::data {
namespace {

using namespace tutti::test;

const std::string golden = std::string(GOLDEN_DIR) + "/gguf";

void expect_encodings(const GgufTokenizer& t, const nlohmann::json& cases) {
  ASSERT_GT(cases.size(), 30u);
  for (const auto& c : cases) {
    auto text = c["text"].get<std::string>();
    auto tokens = c["tokens"].get<std::vector<int32_t>>();
    EXPECT_EQ(t.encode(text, "text"), tokens) << text;
    auto decoded = c["decoded"].get<std::string>();
    bool cut = decoded.find("\xef\xbf\xbd") != std::string::npos;  // a part of a character, which theirs replaces
    EXPECT_TRUE(cut || t.decode(tokens) == decoded) << text;
  }
}

TEST(GgufTokenizer, IsHuggingFaces) {
  GgufTokenizer t(Gguf(golden + "/tokenizer.gguf"));
  expect_encodings(t, nlohmann::json::parse(read_file(golden + "/tokenizer.json", "")));
  EXPECT_EQ(t.begin(), 1);
  EXPECT_EQ(t.end(), 2);
  EXPECT_EQ(t.padding(), 2);
  EXPECT_EQ(t.unknown(), 0);
  EXPECT_FALSE(t.adds_begin());
  EXPECT_TRUE(t.is_special(2));
  EXPECT_FALSE(t.is_special(3));
  EXPECT_EQ(t.chat_template(), "{{ messages }}");
  EXPECT_EQ(t.decode(std::vector<int32_t>{2}), "<|im_end|>");
}

TEST(GgufTokenizer, ArePublishedModels) {
  for (const char* name : {"llama-bpe", "qwen2", "pieces"}) {
    SCOPED_TRACE(name);
    GgufTokenizer t(Gguf(golden + "/" + name + ".gguf"));
    expect_encodings(t, nlohmann::json::parse(read_file(golden + "/" + name + ".json", "")));
    EXPECT_EQ(t.adds_begin(), name != std::string("qwen2"));
  }
}

TEST(GgufTokenizer, SmolLm2s) {
  std::string file = smollm2();
  if (file.empty()) GTEST_SKIP() << "scripts/smollm2.sh fetches it";
  GgufTokenizer t{Gguf(file)};
  EXPECT_EQ(t.size(), 49152);
  expect_encodings(t, nlohmann::json::parse(read_file(golden + "/smollm2.json", ""))["encodings"]);
  EXPECT_EQ(t.decode(std::vector<int32_t>{*t.end()}), "<|im_end|>");
  EXPECT_NE(t.chat_template().find("named SmolLM"), std::string::npos);
}

/// A small vocabulary; metadata of `more` take the place of those with the same key.
std::vector<std::string> whole(const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = {metadatum("tokenizer.ggml.model", gguf_string, gguf_text("gpt2")),
                                  metadatum("tokenizer.ggml.pre", gguf_string, gguf_text("gpt-2")),
                                  texts("tokenizer.ggml.tokens", {"a", "b", "ab", "1", "11", "<x>", "<x>y", ""}),
                                  texts("tokenizer.ggml.merges", {"a b", "1 1"}),
                                  numbers("tokenizer.ggml.token_type", {1, 1, 1, 1, 1, 3, 4, 3})};
  for (const std::string& m : more) {
    uint64_t length = 0;
    std::memcpy(&length, m.data(), 8);
    std::erase_if(all, [&](const std::string& old) { return old.substr(0, 8 + length) == m.substr(0, 8 + length); });
    all.push_back(m);
  }
  return all;
}

GgufTokenizer tokenizer(const std::vector<std::string>& metadata) {
  Folder f;
  return GgufTokenizer(Gguf(f.write("t.gguf", gguf_file(metadata))));
}

TEST(GgufTokenizer, SpecialTokensAndDigits) {
  using Tokens = std::vector<int32_t>;
  GgufTokenizer t = tokenizer(whole());
  EXPECT_EQ(t.encode("ab11", ""), (Tokens{2, 4}));
  EXPECT_EQ(t.encode("a<x>b<x>yab", ""), (Tokens{0, 5, 1, 6, 2})) << "the longest one, and no merge across";
  EXPECT_EQ(t.encode("a zb", ""), (Tokens{0, 1})) << "bytes without a token are dropped, pieces stay apart";
  EXPECT_EQ(t.encode("azb", ""), (Tokens{2})) << "inside a piece they leave no gap, as with Hugging Face";
  EXPECT_EQ(t.encode("", ""), Tokens{});
  EXPECT_EQ(t.decode(Tokens{6, 2, 7, 4}), "<x>yab11");
  EXPECT_EQ(t.begin(), std::nullopt);
  EXPECT_EQ(t.chat_template(), "");
  expect_parts(message_of([&] { t.decode(Tokens{0, 8}); }), {"token at position 1 is 8, expected 0 to 7"});
  expect_parts(message_of([&] { t.encode("<x>\xff", "TEXT"); }), {"TEXT, byte 3", "not UTF-8"});
  GgufTokenizer alone = tokenizer(whole({metadatum("tokenizer.ggml.pre", gguf_string, gguf_text("smollm"))}));
  EXPECT_EQ(alone.encode("ab11", ""), (Tokens{2, 3, 3}));
}

TEST(GgufTokenizer, EndsOfTextTurnAndMessage) {
  auto id = [](const char* key, uint64_t n) {
    return metadatum(std::string("tokenizer.ggml.") + key, gguf_u32, u32(n));
  };
  EXPECT_TRUE(tokenizer(whole()).ends().empty());
  EXPECT_EQ(tokenizer(whole({id("eos_token_id", 5), id("eot_token_id", 6), id("eom_token_id", 7)})).ends(),
            (std::set<int32_t>{5, 6, 7}));
  EXPECT_EQ(tokenizer(whole({id("eot_token_id", 6)})).ends(), (std::set<int32_t>{6}));
  expect_parts(message_of([&] { tokenizer(whole({id("eot_token_id", 8)})); }),
               {"eot_token_id", "is 8, expected 0 to 7"});
}

TEST(GgufTokenizer, WhatIsWrongIsNamed) {
  auto error = [&](const std::string& m) { return message_of([&] { tokenizer(whole({m})); }); };
  auto text = [](const char* key, const char* value) {
    return metadatum(std::string("tokenizer.ggml.") + key, gguf_string, gguf_text(value));
  };
  expect_parts(message_of([&] { tokenizer({}); }), {"t.gguf: metadata 'tokenizer.ggml.model' is missing"});
  expect_parts(error(text("model", "bert")), {"t.gguf, byte ", "is 'bert', expected gpt2 or llama", "use a file"});
  expect_parts(error(text("pre", "gpt-4o")), {"is 'gpt-4o', expected gpt-2, smollm, llama-bpe, qwen2"});
  expect_parts(error(text("tokens", "a")), {"'tokenizer.ggml.tokens' is text, expected an array of strings"});
  expect_parts(error(texts("tokenizer.ggml.tokens", {})), {"has 0 elements"});
  expect_parts(error(texts("tokenizer.ggml.tokens", {"a", "b", "1", "11", "c", "d", "e", "f"})),
               {"t.gguf, byte ", "'tokenizer.ggml.merges', element 0", "has no token 'ab'"});
  expect_parts(error(texts("tokenizer.ggml.tokens", {"a", "b", "ab", "1", "11", "b", "d", "e"})),
               {"'tokenizer.ggml.tokens', element 5: tokens 1 and 5 are both 'b'"});
  expect_parts(error(texts("tokenizer.ggml.tokens", {"a", "b", "ab", "1", "11", "\xff", "d", "e"})),
               {"element 5, byte 0: not UTF-8"});
  expect_parts(error(texts("tokenizer.ggml.merges", {"a b", "1"})),
               {"'tokenizer.ggml.merges', element 1: '1' is not a pair"});
  expect_parts(error(numbers("tokenizer.ggml.token_type", {1, 1})),
               {"has 2 elements, but 'tokenizer.ggml.tokens' has 8"});
  expect_parts(error(numbers("tokenizer.ggml.token_type", {1, 1, 1, 1, 7, 1, 1, 1})),
               {"element 4: 7, expected 1 to 6"});
  expect_parts(error(metadatum("tokenizer.ggml.eos_token_id", gguf_u32, u32(8))), {"is 8, expected 0 to 7"});
  expect_parts(error(metadatum("tokenizer.ggml.bos_token_id", gguf_i32, u32(0xffffffff))), {"is -1, expected 0 to 7"});
}

TEST(GgufTokenizer, WhatIsWrongWithPiecesIsNamed) {
  auto real = [](const std::string& key, const std::vector<float>& all) {
    std::string value = u32(gguf_f32) + u64(all.size());
    for (float x : all) value += little_endian(x);
    return metadatum(key, gguf_array, value);
  };
  const std::string scores = "tokenizer.ggml.scores";
  auto made = [&](const std::string& more, const std::vector<std::string>& tokens = {"a", "b", "ab", "<0x41>"}) {
    std::vector<std::string> all = {metadatum("tokenizer.ggml.model", gguf_string, gguf_text("llama")),
                                    texts("tokenizer.ggml.tokens", tokens), more,
                                    numbers("tokenizer.ggml.token_type", {1, 1, 1, 6})};
    return tokenizer(all);
  };
  using Tokens = std::vector<int32_t>;
  GgufTokenizer t = made(real(scores, {0, 0, -1, 0}));
  EXPECT_EQ(t.encode("", ""), Tokens{});
  EXPECT_EQ(t.decode(Tokens{2, 3}), "abA");
  expect_parts(message_of([&] { t.encode("ab", "TEXT"); }), {"TEXT, near byte 0", "has no token for '\xe2\x96\x81'"});
  auto error = [&](const std::string& more) { return message_of([&] { made(more); }); };
  expect_parts(error(metadatum("x", gguf_u32, u32(1))), {"'tokenizer.ggml.scores' is missing, expected a number"});
  expect_parts(error(real(scores, {0, 0})), {"'tokenizer.ggml.scores' is f32[2]", "each of the 4 tokens"});
  expect_parts(error(real(scores, {0, 0, NAN, 0})), {"element 2: the score of 'ab' is nan"});
  expect_parts(message_of([&] {
                 made(real(scores, {0, 0, 0, 0}), {"a", "b", "a", "<0x41>"});
               }),
               {"element 2: tokens 0 and 2 are both 'a'"});
  expect_parts(message_of([&] {
                 made(real(scores, {0, 0, 0, 0}), {"a", "b", "c", "<0xG1>"});
               }),
               {"element 3: '<0xG1>' is of the type byte"});
}

}  // namespace
}  // namespace tutti::data
