// Byte-level byte pair encoding: Sennrich et al., "Neural machine translation of rare words with subword units" (2016),
// on bytes as GPT-2 has it (Radford et al., 2019).
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "data/tokenizer.h"

namespace tutti::data {

/// A vocabulary in memory. The views must live as long as the constructor runs.
struct BpeVocabulary {
  std::string name;                                   ///< for messages: "FILE"
  std::vector<std::string_view> tokens;               ///< by number, in GPT-2's alphabet of one character per byte
  std::vector<std::string_view> merges;               ///< "a b", the first merged first
  std::function<std::string(size_t)> place_of_merge;  ///< for messages
  std::function<std::string(size_t)> place_of_token;  ///< for messages
  bool digits_alone = false;                          ///< every \p{N} is a piece of its own
  bool drop_unknown_bytes = false;                    ///< bytes that no token stands for are left out, not an error
};

/// A folder's vocab.json (token to number) and merges.txt (pairs of tokens, the first merged first), tokens in GPT-2's
/// alphabet of one character per byte. The text is cut into words, numbers, punctuation and white space as GPT-2 does;
/// merges stay inside a piece. Names of special tokens ("<|endoftext|>") are text like any other.
class TUTTI_API Bpe : public Tokenizer {
 public:
  /// Throws Error(invalid) naming file and line: no such file, not JSON, a number that two tokens have, a line that is
  /// no pair, a pair whose token the vocabulary misses.
  explicit Bpe(const std::string& folder);
  /// Throws Error(invalid) naming the place: a text that two tokens have, a merge that is no pair or whose token is
  /// missing.
  explicit Bpe(const BpeVocabulary& vocabulary);
  ~Bpe() override;
  /// The largest number + 1.
  int64_t size() const override { return size_; }
  std::vector<int32_t> encode(std::string_view text, const std::string& what) const override;
  /// Numbers below size() that no token has stand for nothing.
  std::string decode(std::span<const int32_t> tokens) const override;

 private:
  struct Merge {
    int32_t rank, token;
  };
  struct Pattern;
  void read_vocabulary(const std::string& path);
  void read_merges(const std::string& path);
  void learn_bytes();
  void add_merge(std::string_view line, const std::string& place, const char* remedy);
  int32_t number_of(const std::string& token, const std::string& place) const;
  std::vector<int32_t> merged(std::vector<int32_t> piece) const;

  std::string name_;  // of the vocabulary, for messages
  std::unordered_map<std::string, int32_t> numbers_;
  std::unordered_map<uint64_t, Merge> merges_;  // by both numbers
  std::array<int32_t, 256> of_byte_ = {};       // -1: the vocabulary has none
  std::unordered_map<int32_t, std::string> bytes_of_;
  int64_t size_ = 0;
  bool drop_unknown_bytes_ = false;
  std::unique_ptr<Pattern> digits_, pattern_;  // digits_: null unless they stand alone
};

}  // namespace tutti::data
