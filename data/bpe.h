// Byte-level byte pair encoding: Sennrich et al., "Neural machine translation of rare words with subword units" (2016),
// on bytes as GPT-2 has it (Radford et al., 2019).
#pragma once
#include <array>
#include <memory>
#include <string>
#include <unordered_map>

#include "data/tokenizer.h"

namespace tutti::data {

/// A folder's vocab.json (token to number) and merges.txt (pairs of tokens, the first merged first), tokens in GPT-2's
/// alphabet of one character per byte. The text is cut into words, numbers, punctuation and white space as GPT-2 does;
/// merges stay inside a piece. Names of special tokens ("<|endoftext|>") are text like any other.
class TUTTI_API Bpe : public Tokenizer {
 public:
  /// Throws Error(invalid) naming file and line: no such file, not JSON, a number that two tokens have, a line that is
  /// no pair, a pair whose token the vocabulary misses.
  explicit Bpe(const std::string& folder);
  ~Bpe() override;
  /// The largest number + 1.
  int64_t size() const override { return size_; }
  std::vector<int32_t> encode(std::string_view text, const std::string& what) const override;

 private:
  struct Merge {
    int32_t rank, token;
  };
  struct Pattern;
  void read_vocabulary(const std::string& path);
  void read_merges(const std::string& path);
  int32_t number_of(const std::string& token, const std::string& place) const;
  std::vector<int32_t> merged(std::vector<int32_t> piece) const;

  std::string vocabulary_path_;
  std::unordered_map<std::string, int32_t> numbers_;
  std::unordered_map<uint64_t, Merge> merges_;  // by both numbers
  std::array<int32_t, 256> of_byte_ = {};       // -1: the vocabulary has none
  int64_t size_ = 0;
  std::unique_ptr<Pattern> pattern_;
};

}  // namespace tutti::data
