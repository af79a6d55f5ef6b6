// Decoders of tokenizer.json: from the texts of tokens to text.
#include <fmt/format.h>

#include <unordered_map>

#include "core/base/printable.h"
#include "data/bpe.h"
#include "data/tokenizer.h"
#include "data/tokenizers/stages.h"
#include "data/tokenizers/unicode.h"

namespace tutti::data {
namespace {

using nlohmann::json;
using Tokens = std::vector<std::string>;

/// Tokens of bytes; a token with another character is kept.
void decode_bytes(Tokens& tokens) {
  static const std::unordered_map<std::string, char> bytes = [] {
    std::unordered_map<std::string, char> all;
    for (size_t b = 0; b < byte_alphabet().size(); ++b) all.emplace(byte_alphabet()[b], static_cast<char>(b));
    return all;
  }();
  for (std::string& token : tokens) {
    std::string text;
    bool good = true;
    for (char32_t c : code_points(token, "the token")) {
      auto it = bytes.find(utf8(c));
      good = good && it != bytes.end();
      if (good) text += it->second;
    }
    if (good) token = std::move(text);
  }
}

void fuse(Tokens& tokens) {
  std::string all;
  for (const std::string& t : tokens) all += t;
  tokens = {all};
}

TokenDecoder word_piece(const json& j, const std::string& here) {
  const std::string prefix = text_at(j, "prefix", here, "##");
  const bool cleans = flag_at(j, "cleanup", here, true);
  static const std::pair<const char*, const char*> marks[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  return [=](Tokens& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0) tokens[i] = tokens[i].starts_with(prefix) ? tokens[i].substr(prefix.size()) : " " + tokens[i];
      if (!cleans) continue;
      for (auto [from, to] : marks) tokens[i] = Regex::literal(from).replace(tokens[i], to);
    }
  };
}

TokenDecoder strip_ends(const json& j, const std::string& here) {
  const std::string what = text_at(j, "content", here);
  auto count = [&](const char* key) {
    if (!j.contains(key) || !j[key].is_number_unsigned() || j[key] > 1000)
      fail_at(here, fmt::format("'{}' is not a count", key));
    return j[key].get<size_t>();
  };
  return [what, start = count("start"), stop = count("stop")](Tokens& tokens) {
    for (std::string& t : tokens) {
      for (size_t i = 0; i < start && t.starts_with(what); ++i) t.erase(0, what.size());
      for (size_t i = 0; i < stop && t.ends_with(what); ++i) t.erase(t.size() - what.size());
    }
  };
}

}  // namespace

TokenDecoder read_decoder(const json& j, const std::string& place) {
  if (j.is_null())
    return [](Tokens& tokens) {
      for (size_t i = 1; i < tokens.size(); ++i) tokens[i].insert(0, " ");
    };
  const std::string type = type_of(j, place), here = place + ": " + printable(type, 40);
  if (type == "Sequence") {
    if (!j.contains("decoders") || !j["decoders"].is_array()) fail_at(here, "'decoders' is missing");
    std::vector<TokenDecoder> all;
    for (const json& one : j["decoders"]) all.push_back(read_decoder(one, place));
    return [all](Tokens& tokens) {
      for (const TokenDecoder& d : all) d(tokens);
    };
  }
  if (type == "ByteLevel") return decode_bytes;
  if (type == "Fuse") return fuse;
  if (type == "ByteFallback")
    return [](Tokens& tokens) {
      for (std::string& t : tokens)
        if (int byte = byte_of_token(t); byte >= 0) t = std::string(1, static_cast<char>(byte));
    };
  if (type == "WordPiece") return word_piece(j, here);
  if (type == "Metaspace") {
    const std::string mark = text_at(j, "replacement", here, "\xe2\x96\x81");
    const std::string usual = flag_at(j, "add_prefix_space", here, true) ? "always" : "never";
    const bool prepends = text_at(j, "prepend_scheme", here, usual) != "never";
    return [=](Tokens& tokens) {
      const Regex at = Regex::literal(mark);
      for (size_t i = 0; i < tokens.size(); ++i) {
        if (i == 0 && prepends && tokens[i].starts_with(mark)) tokens[i].erase(0, mark.size());
        tokens[i] = at.replace(tokens[i], " ");
      }
    };
  }
  if (type == "BPEDecoder")
    return [suffix = text_at(j, "suffix", here, "</w>")](Tokens& tokens) {
      for (size_t i = 0; i < tokens.size(); ++i)
        tokens[i] = Regex::literal(suffix).replace(tokens[i], i + 1 < tokens.size() ? " " : "");
    };
  if (type == "Replace") {
    if (!j.contains("pattern") || !j["pattern"].is_object()) fail_at(here, "'pattern' is missing");
    const json& p = j["pattern"];
    const Regex what =
        p.contains("String") ? Regex::literal(text_at(p, "String", here)) : Regex(text_at(p, "Regex", here), here);
    return [what, by = text_at(j, "content", here)](Tokens& tokens) {
      for (std::string& t : tokens) t = what.replace(t, by);
    };
  }
  if (type == "Strip") return strip_ends(j, here);
  fail_at(here, "decoders of this type are not supported");
}

}  // namespace tutti::data
