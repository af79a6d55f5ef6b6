// tokenizer.json: what is refused, and small tokenizers by hand. tokenizer_peer.py compares with the `tokenizers`
// package.
#include "data/hf_tokenizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/train/files.h"

namespace tutti::data {
namespace {

using test::expect_parts;
using test::message_of;
using Ids = std::vector<int32_t>;

const std::string bpe =
    R"("model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3, "Ġab": 4, "c": 5}, "merges": ["a b", ["Ġ", "ab"]]})";

HfTokenizer read(const std::string& more) { return {"{" + bpe + more + "}", "t.json"}; }
std::string refusal(const std::string& more) {
  return message_of([&] { read(more); });
}

TEST(HfTokenizer, MergesAndSpecialTokens) {
  HfTokenizer t =
      read(R"(, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"},
      "added_tokens": [{"id": 6, "content": "<s>", "normalized": false}, {"id": 7, "content": "<sab>", "normalized": false}],
      "post_processor": {"type": "RobertaProcessing", "cls": ["<s>", 6], "sep": ["<sab>", 7]})");
  EXPECT_EQ(t.size(), 8);
  EXPECT_EQ(t.encode("ab ab<s>ba<sab>", ""), (Ids{6, 2, 4, 6, 1, 0, 7, 7}));
  EXPECT_EQ(t.decode(Ids{4, 6, 2}), " ab<s>ab");
  EXPECT_EQ(t.encode("aXb", ""), (Ids{6, 2, 7}));  // without unk_token, unknown characters are left out, as there
  expect_parts(message_of([&] { t.decode(Ids{9}); }), {"9", "0 to 7"});
  expect_parts(message_of([&] { t.encode("a\xff", "the prompt"); }), {"the prompt, byte 1", "UTF-8"});
}

TEST(HfTokenizer, BytesStandForUnknownCharacters) {
  std::string vocabulary = R"("<unk>": 0, "a": 1)";
  for (int b = 0; b < 256; ++b) vocabulary += fmt::format(", \"<0x{:02X}>\": {}", b, b + 2);
  HfTokenizer t(
      "{\"model\": {\"type\": \"BPE\", \"byte_fallback\": true, \"unk_token\": \"<unk>\", \"merges\": [], \"vocab\": "
      "{" +
          vocabulary + R"(}}, "decoder": {"type": "ByteFallback"}})",
      "t.json");
  EXPECT_EQ(t.encode("a\xc3\xa4", ""), (Ids{1, 2 + 0xc3, 2 + 0xa4}));
  EXPECT_EQ(t.decode(Ids{2 + 0xc3, 2 + 0xa4, 1}),
            "\xc3\xa4"
            "a");
}

TEST(HfTokenizer, WhatIsUnknownIsNamed) {
  expect_parts(refusal(R"(, "normalizer": {"type": "Nmt"})"), {"t.json: normalizer: Nmt", "not supported"});
  expect_parts(refusal(R"(, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "UnicodeScripts"}]})"),
               {"t.json: pre_tokenizer: UnicodeScripts"});
  expect_parts(refusal(R"(, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"})"),
               {"Split", "'(a'", "does not compile"});
  expect_parts(refusal(R"(, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\ba"}, "behavior": "Isolated"})"),
               {"escape \\b"});
  expect_parts(refusal(R"(, "pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "Gone"})"),
               {"Gone"});
  expect_parts(refusal(R"(, "decoder": {"type": "CTC"})"), {"t.json: decoder: CTC"});
  expect_parts(refusal(R"(, "post_processor": {"type": "BertProcessing", "cls": ["x", 99], "sep": ["x", 0]})"),
               {"no token 99"});
  expect_parts(refusal(R"(, "added_tokens": [{"content": "x"}])"), {"added_tokens", "'x' has no id"});
  expect_parts(refusal(R"(, "added_tokens": [{"content": "x", "id": 2000000}])"),
               {"tokens have numbers up to 2000000"});
  auto model = [](const std::string& text) {
    return message_of([&] { HfTokenizer("{\"model\": " + text + "}", "t.json"); });
  };
  expect_parts(model(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]})"), {"merges[0]", "no token 'b'"});
  expect_parts(model(R"({"type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 0.1})"), {"'dropout'"});
  expect_parts(model(R"({"type": "BPE", "vocab": {"a": -1}, "merges": []})"), {"token 'a'", "2^31"});
  expect_parts(model(R"({"type": "Unigram", "vocab": [["a"]]})"), {"vocab[0]"});
  expect_parts(model(R"({"type": "Mixer"})"), {"model: Mixer"});
  expect_parts(message_of([] { HfTokenizer("{\"model\": ", "t.json"); }), {"t.json, byte"});
}

std::string split(const std::string& pattern) {
  return fmt::format(R"(, "pre_tokenizer": {{"type": "Split", "pattern": {{"Regex": "{}"}}, "behavior": "Isolated"}})",
                     pattern);
}

TEST(HfTokenizer, PatternsHaveOnigurumasMeaning) {
  EXPECT_EQ(read(split("^a")).encode("b\nab", ""), (Ids{1, 0, 1}));  // ^ and $ match at lines
  EXPECT_EQ(read(split("b$")).encode("ab\nc", ""), (Ids{0, 1, 5}));
  EXPECT_EQ(read(split("[]b]")).encode("ab", ""), (Ids{0, 1}));
  EXPECT_EQ(read(split(R"([\\[b&])")).encode("ab", ""), (Ids{0, 1}));
  EXPECT_EQ(read(split("&&|b")).encode("ab", ""), (Ids{0, 1}));
  for (const char* pattern : {"[a[bc]]", "[]a[b]", "[[:alpha:]]"})
    expect_parts(refusal(split(pattern)), {"Split", "'[' within a character class", pattern});
  expect_parts(refusal(split("[a-c&&[^b]]")), {"Split", "'&&' within a character class", "[a-c&&[^b]]"});
  expect_parts(refusal(split("a(?m:.)")), {"the option (?m)"});
}

TEST(HfTokenizer, FilesBesideIt) {
  test::Folder f;
  auto with = [&](const std::string& generation) {
    f.write("generation_config.json", generation);
    return HfTokenizer(f.path()).ends();
  };
  f.write("tokenizer.json", "{" + bpe + "}");
  EXPECT_EQ(with(R"({"eos_token_id": 2})"), (std::set<int32_t>{2}));
  EXPECT_EQ(with(R"({"eos_token_id": [2, 4]})"), (std::set<int32_t>{2, 4}));
  EXPECT_TRUE(with(R"({"eos_token_id": null})").empty());
  for (const char* wrong : {"-1", "1.5", "\"2\"", "[[2]]", "{\"a\": 2}"})
    expect_parts(message_of([&] { with(fmt::format("{{\"eos_token_id\": {}}}", wrong)); }),
                 {"generation_config.json: eos_token_id", "expected an integer"});
  expect_parts(message_of([&] { with("{\"eos_token_id\": " + std::string(100'000, '[')); }),
               {"generation_config.json, byte", "nested too deeply"});
  with("{}");
  // transformers drops these keys where there is a tokenizer.json (hf_peer.py compares).
  f.write("tokenizer_config.json",
          R"({"add_bos_token": true, "add_eos_token": true, "bos_token": "c", "eos_token": "c"})");
  EXPECT_EQ(HfTokenizer(f.path()).encode("ab", ""), (Ids{2}));
}

}  // namespace
}  // namespace tutti::data
