#include "data/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"

namespace tutti::data {

std::vector<char32_t> code_points(std::string_view text, const std::string& what) {
  std::vector<char32_t> all;
  for (size_t i = 0; i < text.size();) {
    auto byte = static_cast<unsigned char>(text[i]);
    size_t length = byte < 0x80 ? 1 : byte >> 5 == 6 ? 2 : byte >> 4 == 14 ? 3 : byte >> 3 == 30 ? 4 : 0;
    char32_t c = length == 1 ? byte : byte & (0x7fu >> length);
    bool good = length > 0 && i + length <= text.size();
    for (size_t k = 1; good && k < length; ++k) {
      auto next = static_cast<unsigned char>(text[i + k]);
      good = next >> 6 == 2;
      c = c << 6 | (next & 0x3fu);
    }
    constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    good = good && c >= least[length] && c <= 0x10ffff && !(c >= 0xd800 && c < 0xe000);
    if (!good) throw invalid(fmt::format("{}, byte {}: not UTF-8", what, i), "convert it to UTF-8");
    all.push_back(c);
    i += length;
  }
  return all;
}

std::string utf8(char32_t c) {
  auto byte = [](char32_t bits) { return static_cast<char>(static_cast<unsigned char>(bits)); };
  auto more = [&](int shift) { return byte(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xc0 | c >> 6), more(0)};
  if (c < 0x10000) return {byte(0xe0 | c >> 12), more(6), more(0)};
  return {byte(0xf0 | c >> 18), more(12), more(6), more(0)};
}

void Tokenizer::check_token(std::span<const int32_t> tokens, size_t i) const {
  if (tokens[i] < 0 || tokens[i] >= size())
    throw invalid(fmt::format("the token at position {} is {}, expected 0 to {}", i, tokens[i], size() - 1),
                  "use the tokenizer that produced the tokens");
}

std::vector<int32_t> Bytes::encode(std::string_view text, const std::string&) const {
  std::vector<int32_t> tokens(text.size());
  std::ranges::transform(text, tokens.begin(), [](char c) { return int32_t{static_cast<unsigned char>(c)}; });
  return tokens;
}

std::string Bytes::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    check_token(tokens, i);
    text += static_cast<char>(tokens[i]);
  }
  return text;
}

Characters::Characters(std::string_view text, const std::string& what) : known_(code_points(text, what)) {
  std::ranges::sort(known_);
  known_.erase(std::unique(known_.begin(), known_.end()), known_.end());
  for (char32_t c : known_) vocabulary_ += utf8(c);
}

std::vector<int32_t> Characters::encode(std::string_view text, const std::string& what) const {
  std::vector<int32_t> tokens;
  tokens.reserve(text.size());
  size_t byte = 0;
  for (char32_t c : code_points(text, what)) {
    auto at = std::ranges::lower_bound(known_, c);
    if (at == known_.end() || *at != c)
      throw invalid(fmt::format("{}, byte {}: the vocabulary of {} characters does not contain U+{:04X} '{}'", what,
                                byte, size(), static_cast<uint32_t>(c), utf8(c)),
                    "use only characters that the model was trained on");
    tokens.push_back(static_cast<int32_t>(at - known_.begin()));
    byte += utf8(c).size();
  }
  return tokens;
}

std::string Characters::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    check_token(tokens, i);
    text += utf8(known_[static_cast<size_t>(tokens[i])]);
  }
  return text;
}

int byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int value = 0;
  for (char c : token.substr(3, 2)) {
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return -1;
    value = 16 * value + digit;
  }
  return value;
}

}  // namespace tutti::data
