#include "data/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"

namespace tutti::data {

TokenStream::TokenStream(std::string set_name, std::vector<int32_t> tokens, int64_t context, int64_t vocabulary)
    : Source(std::move(set_name)), tokens_(std::move(tokens)), context_(context), vocabulary_(vocabulary) {
  if (context < 1) throw invalid(fmt::format("text {}: a context of {} tokens, at least 1 is needed", name, context));
  if (size() < 1)
    throw invalid(fmt::format("text {}: {} tokens, a sample takes {} and one more", name, tokens_.size(), context),
                  "use a smaller --context, or a longer text");
}

int64_t TokenStream::size() const { return (static_cast<int64_t>(tokens_.size()) - 1) / context_; }

std::vector<Column> TokenStream::columns() const {
  Column tokens{.name = "tokens",
                .type = {DType::i32, {context_}},
                .table = "tokens",
                .window = true,
                .stride = context_,
                .classes = vocabulary_};
  Column next = tokens;
  next.name = "next";
  next.offset = 1;
  return {tokens, next};
}

std::vector<Table> TokenStream::tables() const {
  return {{"tokens",
           {DType::i32, {static_cast<int64_t>(tokens_.size())}},
           reinterpret_cast<const std::byte*>(tokens_.data())}};
}

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
    if (!good)
      throw invalid(fmt::format("{}, byte {}: not UTF-8", what, i), "convert it to UTF-8, or use --tokenizer bytes");
    all.push_back(c);
    i += length;
  }
  return all;
}

Characters::Characters(std::string_view text) : known_(code_points(text, "the text")) {
  std::ranges::sort(known_);
  known_.erase(std::unique(known_.begin(), known_.end()), known_.end());
}

std::vector<int32_t> Characters::encode(std::string_view text) const {
  std::vector<char32_t> points = code_points(text, "the text");
  std::vector<int32_t> tokens;
  tokens.reserve(points.size());
  for (char32_t c : points) {
    auto at = std::ranges::lower_bound(known_, c);
    if (at == known_.end() || *at != c)
      throw invalid(fmt::format("the vocabulary lacks the character U+{:04X}", static_cast<uint32_t>(c)),
                    "use a text with the characters that the model was trained on");
    tokens.push_back(static_cast<int32_t>(at - known_.begin()));
  }
  return tokens;
}

}  // namespace tutti::data
