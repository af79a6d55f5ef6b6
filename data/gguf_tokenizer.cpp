#include "data/gguf_tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "core/base/status.h"
#include "data/sentence_pieces.h"

namespace tutti::data {
namespace {

const std::string tokens_key = "tokenizer.ggml.tokens", merges_key = "tokenizer.ggml.merges",
                  types_key = "tokenizer.ggml.token_type";
const char* const other_remedy = "use a file with one of these tokenizers, or give another: the option tokenizer";

/// The names that files use for the same pre-tokenizer.
const std::map<std::string, std::string> same_split = {
    {"llama3", "llama-bpe"}, {"llama-v3", "llama-bpe"}, {"deepseek-r1-qwen", "qwen2"}, {"gpt2", "gpt-2"}};

const BpeSplit& split_of(const Gguf& file) {
  const std::string key = "tokenizer.ggml.pre";
  std::string given = file.text(key), name = given;
  if (auto it = same_split.find(name); it != same_split.end()) name = it->second;
  std::vector<std::string> known;
  for (const BpeSplit& s : bpe_splits()) {
    if (s.name == name) return s;
    known.emplace_back(s.name);
  }
  throw file.error(file.find(key)->at,
                   fmt::format("metadata '{}' is '{}', expected {}", key, given, fmt::join(known, ", ")), other_remedy);
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

// The types of tokens, by the format's numbers.
/// The types of all tokens; normal if the file has none.
std::vector<int64_t> types_of(const Gguf& file, size_t size) {
  if (!file.find(types_key)) return std::vector<int64_t>(size, gguf_token::normal);
  const GgufValue& types = file.integers(types_key);
  if (types.size() != size)
    throw file.error(types.at, fmt::format("metadata '{}' has {} elements, but '{}' has {}", types_key, types.size(),
                                           tokens_key, size));
  std::vector<int64_t> all;
  for (size_t i = 0; i < size; ++i) {
    all.push_back(types.integer(i).value_or(-1));
    if (all[i] < gguf_token::normal || all[i] > gguf_token::byte)
      throw file.error(types.byte_of(i),
                       fmt::format("metadata '{}', element {}: {}, expected 1 to 6", types_key, i, all[i]));
  }
  return all;
}

std::vector<std::string_view> texts_of(const GgufValue& v) {
  std::vector<std::string_view> all;
  for (size_t i = 0; i < v.size(); ++i) all.push_back(*v.text(i));
  return all;
}

}  // namespace

GgufTokenizer::GgufTokenizer(const Gguf& file) {
  const std::string key = "tokenizer.ggml.model", model = file.text(key);
  if (model != "gpt2" && model != "llama")
    throw file.error(file.find(key)->at, fmt::format("metadata '{}' is '{}', expected gpt2 or llama", key, model),
                     other_remedy);
  const GgufValue& tokens = file.texts(tokens_key);
  const size_t size = tokens.size();
  if (size == 0 || size >= static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    throw file.error(tokens.at, fmt::format("metadata '{}' has {} elements, expected 1 to 2^31 - 2", tokens_key, size));
  begin_ = number_of(file, "tokenizer.ggml.bos_token_id", size);
  end_ = number_of(file, "tokenizer.ggml.eos_token_id", size);
  padding_ = number_of(file, "tokenizer.ggml.padding_token_id", size);
  unknown_ = number_of(file, "tokenizer.ggml.unknown_token_id", size);
  if (end_) ends_.insert(*end_);
  for (const char* turn : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    if (std::optional<int32_t> token = number_of(file, turn, size)) ends_.insert(*token);
  if (model == "gpt2")
    read_bpe(file);
  else
    read_pieces(file);
  read_specials(file);
  adds_begin_ = file.boolean("tokenizer.ggml.add_bos_token", adds_begin_);
  chat_template_ = file.text("tokenizer.chat_template", "");
}

void GgufTokenizer::read_bpe(const Gguf& file) {
  const BpeSplit& split = split_of(file);
  const GgufValue &tokens = file.texts(tokens_key), &merges = file.texts(merges_key);
  inner_ = std::make_unique<Bpe>(
      BpeVocabulary{.name = fmt::format("metadata '{}'", tokens_key),
                    .tokens = texts_of(tokens),
                    .merges = texts_of(merges),
                    .place_of_merge = [&](size_t i) { return place_of(file, merges_key, merges, i); },
                    .place_of_token = [&](size_t i) { return place_of(file, tokens_key, tokens, i); },
                    .split = &split,
                    .drop_unknown_bytes = true});
  adds_begin_ = split.begins;
}

void GgufTokenizer::read_pieces(const Gguf& file) {
  const std::string scores_key = "tokenizer.ggml.scores";
  const GgufValue& tokens = file.texts(tokens_key);
  const GgufValue* scores = file.find(scores_key);
  if (!scores || !scores->is_array || scores->size() != tokens.size() || !scores->real(0))
    throw file.error(scores ? scores->at : tokens.at,
                     fmt::format("metadata '{}' is {}, expected a number for each of the {} tokens", scores_key,
                                 scores ? scores->type_name() : "missing", tokens.size()),
                     other_remedy);
  for (const char* key : {"tokenizer.ggml.precompiled_charsmap", "tokenizer.ggml.remove_extra_whitespaces"})
    if (const GgufValue* v = file.find(key); v && v->boolean(0).value_or(true))
      throw file.error(v->at, fmt::format("metadata '{}': tokenizers that normalise texts are not supported", key),
                       other_remedy);
  PieceVocabulary v{.name = fmt::format("metadata '{}'", tokens_key),
                    .tokens = texts_of(tokens),
                    .scores = {},
                    .merged = {},
                    .bytes = {},
                    .place_of_token = [&](size_t i) { return place_of(file, tokens_key, tokens, i); },
                    .unknown = unknown_.value_or(-1),
                    .space_before = file.boolean("tokenizer.ggml.add_space_prefix", true)};
  const std::vector<int64_t> types = types_of(file, tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    v.scores.push_back(static_cast<float>(scores->real(i).value_or(0)));
    v.merged.push_back(types[i] == gguf_token::normal || types[i] == gguf_token::user_defined ||
                       types[i] == gguf_token::unused);
    v.bytes.push_back(types[i] == gguf_token::byte ? byte_of_token(v.tokens[i]) : -1);
    if (types[i] == gguf_token::byte && v.bytes[i] < 0)
      throw invalid(
          fmt::format("{}: '{}' is of the type byte, expected <0x00> to <0xFF>", v.place_of_token(i), v.tokens[i]),
          "use a file with a complete tokenizer");
  }
  inner_ = std::make_unique<SentencePieces>(v);
  drops_space_ = v.space_before;
  adds_begin_ = true;
}

void GgufTokenizer::read_specials(const Gguf& file) {
  const GgufValue& tokens = file.texts(tokens_key);
  const std::vector<int64_t> types = types_of(file, tokens.size());
  std::set<size_t, std::greater<>> lengths;
  for (size_t i = 0; i < types.size(); ++i) {
    bool special =
        types[i] == gguf_token::unknown || types[i] == gguf_token::control || types[i] == gguf_token::user_defined;
    std::string text(*tokens.text(i));
    if (!special || text.empty()) continue;
    auto n = static_cast<int32_t>(i);
    starts_special_[static_cast<unsigned char>(text[0])] = true;
    lengths.insert(text.size());
    specials_.emplace(text, n);
    special_texts_.emplace(n, std::move(text));
  }
  lengths_.assign(lengths.begin(), lengths.end());
}

std::vector<int32_t> GgufTokenizer::encode(std::string_view text, const std::string& what) const {
  code_points(text, what);  // validates first, so that messages report positions in the whole text
  std::vector<int32_t> tokens;
  size_t done = 0;
  auto up_to = [&](size_t end) {
    if (end == done) return;
    std::vector<int32_t> part = inner_->encode(text.substr(done, end - done), what);
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
    text += it != special_texts_.end() ? it->second : inner_->decode(tokens.subspan(i, 1));
  }
  if (drops_space_ && !tokens.empty() && text.starts_with(' ') && !is_special(tokens[0])) text.erase(0, 1);
  return text;
}

}  // namespace tutti::data
