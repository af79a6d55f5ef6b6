// Tokenizers: characters, and byte pair encoding against Hugging Face's tokenizers.
#include "data/tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/bpe.h"
#include "data/file.h"
#include "tests/train/files.h"

namespace tutti::data {
namespace {

using test::expect_parts;
using test::Folder;
using test::message_of;

const std::string golden = std::string(GOLDEN_DIR) + "/bpe";

TEST(Tokenizer, CharactersAreNumberedByCodePoint) {
  Characters c(
      "b\xc3\xa4"
      "a b");
  EXPECT_EQ(c.size(), 4);
  EXPECT_EQ(c.vocabulary(), " ab\xc3\xa4");
  EXPECT_EQ(c.encode("a\xc3\xa4", ""), (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(Characters(c.vocabulary()).encode("b ", ""), (std::vector<int32_t>{2, 0}));
  expect_parts(message_of([&] {
                 c.encode(
                     "\xc3\xa4"
                     "d",
                     "FILE");
               }),
               {"FILE, byte 2", "does not contain U+0064 'd'", "4 characters"});
  expect_parts(message_of([&] { c.encode("a\xff", "FILE"); }), {"FILE, byte 1", "not UTF-8"});
  for (char32_t point : {U'\0', U'a', U'\u07ff', U'\u0800', U'\uffff', U'\U0010ffff'})
    EXPECT_EQ(code_points(utf8(point), ""), std::vector<char32_t>{point});
}

TEST(Tokenizer, DecodesWhatItEncoded) {
  std::string text = "na\xc3\xafve\n", bytes = "\xff\x80z";
  Characters c(text);
  EXPECT_EQ(c.decode(c.encode(text, "")), text);
  EXPECT_EQ(Bytes().decode(Bytes().encode(bytes, "")), bytes);
  expect_parts(message_of([&] {
                 Bytes().decode(std::vector<int32_t>{0, 256});
               }),
               {"token at position 1 is 256, expected 0 to 255"});
  expect_parts(message_of([&] { c.decode(std::vector<int32_t>{-1}); }), {"token at position 0 is -1"});
}

TEST(Tokenizer, BpeIsHuggingFaces) {
  Bpe bpe(golden);
  EXPECT_EQ(bpe.size(), 420);
  auto cases = nlohmann::json::parse(read_file(golden + "/encodings.json", ""));
  ASSERT_GT(cases.size(), 20u);
  for (const auto& c : cases) {
    auto text = c["text"].get<std::string>();
    auto tokens = c["tokens"].get<std::vector<int32_t>>();
    EXPECT_EQ(bpe.encode(text, "text"), tokens) << text;
    EXPECT_EQ(bpe.decode(tokens), text);
  }
}

TEST(Tokenizer, BpeOfALongPieceEnds) {
  Bpe bpe(golden);
  std::string piece;
  for (int i = 0; i < 200000; ++i) piece += "the"[i % 3];
  std::vector<int32_t> tokens = bpe.encode(piece, ""), short_ones = bpe.encode(piece.substr(0, 300), "");
  EXPECT_EQ(tokens.size(), 66668u);  // "the" 66666 times, "t", "h"
  EXPECT_EQ(short_ones[0], tokens[0]);
}

TEST(Tokenizer, BpeNamesWhatItsFilesLack) {
  Folder f;
  std::string vocabulary = R"({"a": 0, "b": 1, "ab": 2})";
  auto error = [&](const std::string& vocab, const std::string& merges, const std::string& text = "ab") {
    test::put(f / "vocab.json", vocab);
    test::put(f / "merges.txt", merges);
    return message_of([&] { Bpe(f / "").encode(text, "TEXT"); });
  };
  test::put(f / "vocab.json", vocabulary);
  test::put(f / "merges.txt", "#version: 0.2\r\na b\r\n");
  EXPECT_EQ(Bpe(f / "").encode("abab", ""), (std::vector<int32_t>{2, 2}));
  expect_parts(error("[1]", ""), {"vocab.json: not a JSON object"});
  expect_parts(error("{", ""), {"vocab.json, byte 1: the file is no JSON"});
  expect_parts(error("{}", ""), {"vocab.json: the file has no tokens"});
  expect_parts(error(R"({"a": 0, "a": 1})", ""), {"vocab.json, byte ", "contains the key 'a' twice"});
  expect_parts(error(R"({"a": 0, "b": 2147483646})", ""), {"2 tokens have numbers up to 2147483646", "below 4"});
  expect_parts(error(R"({"a": -1})", ""), {"vocab.json", "number of token 'a' must be"});
  expect_parts(error(R"({"a": 1.5})", ""), {"number of token 'a' must be"});
  expect_parts(error(R"({"a": 4, "b": 4})", ""), {"'a' and 'b'", "number 4"});
  expect_parts(error(vocabulary, "a b\nab\n"), {"merges.txt, line 2", "'ab' is not a pair"});
  expect_parts(error(vocabulary, "a b\nab a\n"), {"merges.txt, line 2", "has no token 'aba'"});
  expect_parts(error(vocabulary, "a b\n", "ab c"), {"TEXT, byte 2", "has no token for the byte 0x20"});
  expect_parts(error(vocabulary, "a b\n", "ab\xff"), {"TEXT, byte 2", "not UTF-8"});
  std::filesystem::remove(f / "merges.txt");
  expect_parts(message_of([&] { Bpe b(f / ""); }),
               {"merges.txt", "no such file", "vocab.json and merges.txt in GPT-2's format"});
}

}  // namespace
}  // namespace tutti::data
