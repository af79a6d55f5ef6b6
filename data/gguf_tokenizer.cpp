#include "data/gguf_tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "core/base/status.h"

namespace tutti::data {
namespace {

const std::string tokens_key = "tokenizer.ggml.tokens", merges_key = "tokenizer.ggml.merges",
                  types_key = "tokenizer.ggml.token_type";
const char* const other_remedy = "use a file whose tokenizer has the model gpt2 and the pre-tokenizer smollm or gpt-2";

/// Throws unless the text of that key is in `known`.
std::string one_of(const Gguf& file, const std::string& key, const std::vector<std::string>& known) {
  std::string text = file.text(key);
  if (std::ranges::find(known, text) == known.end())
    throw file.error(file.find(key)->at,
                     fmt::format("metadata '{}' is '{}', expected {}", key, text, fmt::join(known, " or ")),
                     other_remedy);
  return text;
}

/// The token id of that key, if the file has it.
std::optional<int32_t> number_of(const Gguf& file, const std::string& key, size_t size) {
  const GgufValue* v = file.find(key);
  if (!v) return std::nullopt;
  int64_t n = file.integer(key);
  if (n < 0 || n >= static_cast<int64_t>(size))
    throw file.error(v->at, fmt::format("metadata '{}' is {}, expected 0 to {}", key, n, size - 1));
  return static_cast<int32_t>(n);
}

std::string place_of(const Gguf& file, const std::string& key, const GgufValue& v, size_t i) {
  return fmt::format("{}, byte {}: metadata '{}', element {}", file.path(), v.byte_of(i), key, i);
}

std::vector<std::string_view> texts_of(const GgufValue& v) {
  std::vector<std::string_view> all;
  for (size_t i = 0; i < v.size(); ++i) all.push_back(*v.text(i));
  return all;
}

}  // namespace

GgufTokenizer::GgufTokenizer(const Gguf& file) {
  one_of(file, "tokenizer.ggml.model", {"gpt2"});
  std::string pre = one_of(file, "tokenizer.ggml.pre", {"smollm", "gpt-2"});
  const GgufValue &tokens = file.texts(tokens_key), &merges = file.texts(merges_key);
  if (tokens.size() == 0 || tokens.size() >= static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    throw file.error(tokens.at,
                     fmt::format("metadata '{}' has {} elements, expected 1 to 2^31 - 2", tokens_key, tokens.size()));
  BpeVocabulary v{.name = fmt::format("metadata '{}'", tokens_key),
                  .tokens = texts_of(tokens),
                  .merges = texts_of(merges),
                  .place_of_merge = [&](size_t i) { return place_of(file, merges_key, merges, i); },
                  .place_of_token = [&](size_t i) { return place_of(file, tokens_key, tokens, i); },
                  .digits_alone = pre == "smollm",
                  .drop_unknown_bytes = true};
  bpe_ = std::make_unique<Bpe>(v);

  if (file.find(types_key)) {
    const GgufValue& types = file.integers(types_key);
    if (types.size() != tokens.size())
      throw file.error(types.at, fmt::format("metadata '{}' has {} elements, but '{}' has {}", types_key, types.size(),
                                             tokens_key, tokens.size()));
    std::set<size_t, std::greater<>> lengths;
    for (size_t i = 0; i < types.size(); ++i) {
      constexpr int64_t normal = 1, unknown = 2, control = 3, user_defined = 4, byte = 6;
      std::optional<int64_t> type = types.integer(i);
      if (!type || *type < normal || *type > byte)
        throw file.error(types.byte_of(i), fmt::format("metadata '{}', element {}: {}, expected 1 to 6", types_key, i,
                                                       type.value_or(-1)));
      bool special = *type == unknown || *type == control || *type == user_defined;
      std::string text(v.tokens[i]);
      if (!special || text.empty()) continue;
      auto n = static_cast<int32_t>(i);
      starts_special_[static_cast<unsigned char>(text[0])] = true;
      lengths.insert(text.size());
      specials_.emplace(text, n);
      special_texts_.emplace(n, std::move(text));
    }
    lengths_.assign(lengths.begin(), lengths.end());
  }

  begin_ = number_of(file, "tokenizer.ggml.bos_token_id", tokens.size());
  end_ = number_of(file, "tokenizer.ggml.eos_token_id", tokens.size());
  padding_ = number_of(file, "tokenizer.ggml.padding_token_id", tokens.size());
  unknown_ = number_of(file, "tokenizer.ggml.unknown_token_id", tokens.size());
  adds_begin_ = file.boolean("tokenizer.ggml.add_bos_token", false);
  chat_template_ = file.text("tokenizer.chat_template", "");
}

std::vector<int32_t> GgufTokenizer::encode(std::string_view text, const std::string& what) const {
  code_points(text, what);  // validates first, so that messages report positions in the whole text
  std::vector<int32_t> tokens;
  size_t done = 0;
  auto up_to = [&](size_t end) {
    if (end == done) return;
    std::vector<int32_t> part = bpe_->encode(text.substr(done, end - done), what);
    tokens.insert(tokens.end(), part.begin(), part.end());
  };
  for (size_t at = 0; at < text.size();) {
    size_t length = 0;
    if (starts_special_[static_cast<unsigned char>(text[at])]) {
      for (size_t l : lengths_) {
        auto it = l <= text.size() - at ? specials_.find(text.substr(at, l)) : specials_.end();
        if (it == specials_.end()) continue;
        up_to(at);
        tokens.push_back(it->second);
        length = l;
        break;
      }
    }
    at += std::max<size_t>(length, 1);
    if (length > 0) done = at;
  }
  up_to(text.size());
  return tokens;
}

std::string GgufTokenizer::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    check_token(tokens, i);
    auto it = special_texts_.find(tokens[i]);
    text += it != special_texts_.end() ? it->second : bpe_->decode(tokens.subspan(i, 1));
  }
  return text;
}

}  // namespace tutti::data
