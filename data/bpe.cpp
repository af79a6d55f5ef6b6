#include "data/bpe.h"

#include <fmt/format.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/status.h"
#include "core/base/text.h"
#include "data/file.h"
#include "data/files/strict_json.h"

namespace tutti::data {
namespace {

// White space is Unicode's White_Space, which differs from PCRE2's \s.
#define TUTTI_SPACE R"(\t-\r\x{85}\p{Z})"

constexpr const char* gpt2_pattern =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^)" TUTTI_SPACE R"(\p{L}\p{N}]++|[)" TUTTI_SPACE
    R"(]+(?![^)" TUTTI_SPACE R"(])|[)" TUTTI_SPACE "]+";
/// Llama 3's and Qwen 2's, which differ in how many digits a piece may have.
#define TUTTI_LLAMA3(digits)                                                                                          \
  R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}++|)" digits R"(| ?[^)" TUTTI_SPACE                          \
  R"(\p{L}\p{N}]++[\r\n]*|[)" TUTTI_SPACE R"(]*[\r\n]+|[)" TUTTI_SPACE R"(]+(?![^)" TUTTI_SPACE R"(])|[)" TUTTI_SPACE \
  "]+"

#define TUTTI_LLAMA3_SOURCE(digits)                                                                              \
  R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)" digits R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)" \
  R"(\s+(?!\S)|\s+)"

#define TUTTI_3_DIGITS R"(\p{N}{1,3})"
#define TUTTI_DIGIT R"(\p{N})"
constexpr BpeSplit splits[] = {
    {"gpt-2", gpt2_pattern, nullptr, false, false, false},
    {"smollm", gpt2_pattern, nullptr, true, false, false},
    {"llama-bpe", TUTTI_LLAMA3(TUTTI_3_DIGITS), TUTTI_LLAMA3_SOURCE(TUTTI_3_DIGITS), false, true, true},
    {"qwen2", TUTTI_LLAMA3(TUTTI_DIGIT), TUTTI_LLAMA3_SOURCE(TUTTI_DIGIT), false, false, false}};
const char* const digits_pattern = R"(\p{N}|\P{N}++)";

const char* const folder_remedy = "the folder must contain vocab.json and merges.txt in GPT-2's format";
const char* const vocabulary_remedy = "use a file with a complete tokenizer";

}  // namespace

const std::array<std::string, 256>& byte_alphabet() {
  static const std::array<std::string, 256> alphabet = [] {
    std::array<std::string, 256> all;
    char32_t next = 0x100;
    for (char32_t b = 0; b < 256; ++b) {
      bool printable = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      all[b] = utf8(printable ? b : next++);
    }
    return all;
  }();
  return alphabet;
}

std::span<const BpeSplit> bpe_splits() { return splits; }

/// A pattern that splits any text into pieces.
struct Bpe::Pattern {
  explicit Pattern(const char* text) {
    int error = 0;
    PCRE2_SIZE at = 0;
    code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text), PCRE2_ZERO_TERMINATED, PCRE2_UTF, &error, &at, nullptr);
    if (!code)
      throw Error(Code::internal, fmt::format("PCRE2 {} cannot compile the tokenizer's pattern, position {}: error {}",
                                              PCRE2_MAJOR, at, error));
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without JIT matching is slower, with the same result
  }
  ~Pattern() { pcre2_code_free(code); }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  /// Calls f(piece) for each piece of valid UTF-8.
  template <class F>
  void cut(std::string_view text, F f) const {
    std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> found(
        pcre2_match_data_create_from_pattern(code, nullptr), pcre2_match_data_free);
    for (size_t at = 0; at < text.size();) {
      int count = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                              PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED, found.get(), nullptr);
      if (count < 1)
        throw Error(Code::internal, fmt::format("PCRE2 failed at byte {} of the text (error {})", at, count));
      size_t end = pcre2_get_ovector_pointer(found.get())[1];
      f(text.substr(at, end - at));
      at = end;
    }
  }

  pcre2_code* code;
};

Bpe::Bpe(const std::string& folder) : name_(folder + "/vocab.json"), pattern_(std::make_unique<Pattern>(gpt2_pattern)) {
  read_vocabulary(name_);
  learn_bytes();
  read_merges(folder + "/merges.txt");
}

Bpe::Bpe(const BpeVocabulary& v)
    : name_(v.name),
      drop_unknown_bytes_(v.drop_unknown_bytes),
      digits_(v.split->digits_alone ? std::make_unique<Pattern>(digits_pattern) : nullptr),
      pattern_(std::make_unique<Pattern>(v.split->pattern)) {
  for (size_t i = 0; i < v.tokens.size(); ++i) {
    auto n = static_cast<int32_t>(i);
    std::string token(v.tokens[i]);
    code_points(token, v.place_of_token(i));
    if (auto [it, fresh] = numbers_.emplace(token, n); !fresh)
      throw invalid(fmt::format("{}: tokens {} and {} are both '{}'", v.place_of_token(i), it->second, n, token),
                    vocabulary_remedy);
    bytes_of_.emplace(n, std::move(token));
  }
  size_ = static_cast<int64_t>(v.tokens.size());
  learn_bytes();
  for (size_t i = 0; i < v.merges.size(); ++i) add_merge(v.merges[i], v.place_of_merge(i), vocabulary_remedy);
  if (v.split->whole_pieces)
    for (const auto& [n, bytes] : bytes_of_) whole_.emplace(bytes, n);
}

Bpe::~Bpe() = default;

void Bpe::read_vocabulary(const std::string& path) {
  auto all = read_json_object(path, folder_remedy);
  if (all.empty()) throw invalid(fmt::format("{}: the file has no tokens", path), folder_remedy);
  for (const auto& [token, number] : all.items()) {
    bool good = number.is_number_unsigned() && number.get<uint64_t>() < std::numeric_limits<int32_t>::max();
    if (!good)
      throw invalid(fmt::format("{}: the number of token '{}' must be an integer from 0 to 2^31 - 2", path, token),
                    folder_remedy);
    auto n = number.get<int32_t>();
    if (auto [it, fresh] = bytes_of_.emplace(n, token); !fresh)
      throw invalid(fmt::format("{}: tokens '{}' and '{}' have the same number {}", path, it->second, token, n),
                    folder_remedy);
    numbers_.emplace(token, n);
    size_ = std::max(size_, int64_t{n} + 1);
  }
  if (static_cast<uint64_t>(size_) > 2 * all.size())  // models allocate memory for every id
    throw invalid(fmt::format("{}: {} tokens have numbers up to {}; token numbers must be below {}", path, all.size(),
                              size_ - 1, 2 * all.size()),
                  folder_remedy);
}

/// Finds the single-byte tokens, and converts the texts of all tokens to bytes. A text with a character outside the
/// alphabet is kept unchanged.
void Bpe::learn_bytes() {
  const std::array<std::string, 256>& alphabet = byte_alphabet();
  std::unordered_map<char32_t, char> byte_of;
  for (size_t b = 0; b < alphabet.size(); ++b) {
    auto it = numbers_.find(alphabet[b]);
    of_byte_[b] = it == numbers_.end() ? -1 : it->second;
    byte_of.emplace(code_points(alphabet[b], "")[0], static_cast<char>(b));
  }
  for (auto& [number, token] : bytes_of_) {
    std::string bytes;
    std::vector<char32_t> characters = code_points(token, name_);
    for (char32_t c : characters)
      if (auto it = byte_of.find(c); it != byte_of.end()) bytes += it->second;
    if (bytes.size() == characters.size()) token = std::move(bytes);
  }
}

int32_t Bpe::number_of(const std::string& token, const std::string& place) const {
  auto it = numbers_.find(token);
  if (it == numbers_.end())
    throw invalid(fmt::format("{}: {} has no token '{}'", place, name_, token),
                  "vocabulary and merges must come from the same tokenizer");
  return it->second;
}

void Bpe::read_merges(const std::string& path) {
  std::vector<std::string> lines = fields(read_file(path, folder_remedy), '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string& line = lines[i];
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || (i == 0 && line.starts_with("#version"))) continue;
    add_merge(line, fmt::format("{}, line {}", path, i + 1), folder_remedy);
  }
}

void Bpe::add_merge(std::string_view line, const std::string& place, const char* remedy) {
  std::vector<std::string> both = fields(line, ' ');
  if (both.size() != 2 || both[0].empty() || both[1].empty())
    throw invalid(fmt::format("{}: '{}' is not a pair of tokens separated by a space", place, line), remedy);
  int32_t a = number_of(both[0], place), b = number_of(both[1], place);
  merges_.emplace(merge_key(a, b), Merge{static_cast<int32_t>(merges_.size()), number_of(both[0] + both[1], place)});
}

std::vector<std::string> Bpe::tokens() const {
  std::vector<std::string> all(static_cast<size_t>(size_));
  for (const auto& [token, n] : numbers_) all[static_cast<size_t>(n)] = token;
  return all;
}

std::vector<std::string> Bpe::merges() const {
  const std::vector<std::string> texts = tokens();
  std::map<int32_t, std::string> by_rank;
  for (const auto& [both, merge] : merges_)
    by_rank.emplace(merge.rank, texts[both >> 32] + " " + texts[both & 0xffffffff]);
  std::vector<std::string> all;
  for (auto& [rank, text] : by_rank) all.push_back(std::move(text));
  return all;
}

std::vector<int32_t> Bpe::encode(std::string_view text, const std::string& what) const {
  code_points(text, what);
  std::vector<int32_t> tokens;
  std::unordered_map<std::string_view, std::vector<int32_t>> known;  // cache: words repeat often
  constexpr size_t short_piece = 64;
  auto add = [&](std::string_view piece) {
    if (auto it = known.find(piece); it != known.end()) {
      tokens.insert(tokens.end(), it->second.begin(), it->second.end());
      return;
    }
    if (auto it = whole_.empty() ? whole_.end() : whole_.find(std::string(piece)); it != whole_.end()) {
      tokens.push_back(it->second);
      return;
    }
    std::vector<int32_t> bytes;
    for (const char& c : piece) {
      auto byte = static_cast<unsigned char>(c);
      if (of_byte_[byte] < 0 && drop_unknown_bytes_) continue;
      if (of_byte_[byte] < 0)
        throw invalid(
            fmt::format("{}, byte {}: {} has no token for the byte 0x{:02x}", what, &c - text.data(), name_, byte),
            "use a vocabulary with all 256 bytes, or another text");
      bytes.push_back(of_byte_[byte]);
    }
    std::vector<int32_t> all = merged(merges_, std::move(bytes));
    tokens.insert(tokens.end(), all.begin(), all.end());
    if (piece.size() <= short_piece) known.emplace(piece, std::move(all));
  };
  if (!digits_) {
    pattern_->cut(text, add);
    return tokens;
  }
  digits_->cut(text, [&](std::string_view part) { pattern_->cut(part, add); });
  return tokens;
}

std::string Bpe::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    check_token(tokens, i);
    if (auto it = bytes_of_.find(tokens[i]); it != bytes_of_.end()) text += it->second;
  }
  return text;
}

}  // namespace tutti::data
