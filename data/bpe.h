// Byte-level byte pair encoding: Sennrich et al., "Neural machine translation of rare words with subword units" (2016),
// on bytes as in GPT-2 (Radford et al., 2019).
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "data/merges.h"
#include "data/tokenizer.h"

namespace tutti::data {

/// How a text is cut into pieces that merges do not cross: the pre-tokenizers of published models.
struct TUTTI_API BpeSplit {
  const char* name;     ///< as GGUF files call it
  const char* pattern;  ///< PCRE2
  const char* source;   ///< the same in tokenizer.json, for Oniguruma; null: GPT-2's, which ByteLevel has
  bool digits_alone;    ///< every \p{N} is a piece by itself, before the pattern is applied
  bool whole_pieces;    ///< a piece that is a token is not built by merges
  bool begins;          ///< models expect the begin token before a text, unless the file says otherwise
};
/// The known ones; the first is GPT-2's.
TUTTI_API std::span<const BpeSplit> bpe_splits();

/// GPT-2's character for each byte, as UTF-8: the byte itself if it is printable in Latin-1, else the next one starting
/// at U+0100.
TUTTI_API const std::array<std::string, 256>& byte_alphabet();

/// A vocabulary in memory. The views must live as long as the constructor runs.
struct BpeVocabulary {
  std::string name;                                   ///< for messages: the file
  std::vector<std::string_view> tokens;               ///< by id, in GPT-2's alphabet of one character per byte
  std::vector<std::string_view> merges;               ///< "a b", in merge order
  std::function<std::string(size_t)> place_of_merge;  ///< for messages
  std::function<std::string(size_t)> place_of_token;  ///< for messages
  const BpeSplit* split = &bpe_splits()[0];
  bool drop_unknown_bytes = false;  ///< bytes without a token are dropped instead of an error
};

/// Reads a folder's vocab.json (token to id) and merges.txt (pairs of tokens, in merge order), with tokens in GPT-2's
/// alphabet of one character per byte. The text is split into words, numbers, punctuation and white space as in GPT-2;
/// merges do not cross pieces. Names of special tokens ("<|endoftext|>") are ordinary text.
class TUTTI_API Bpe : public Tokenizer {
 public:
  /// Throws Error(invalid) naming file and line: no such file, not JSON, an id used twice, a line that is not a pair, a
  /// pair whose token is not in the vocabulary.
  explicit Bpe(const std::string& folder);
  /// Throws Error(invalid) naming the place: a token that occurs twice, a merge that is not a pair or whose token is
  /// missing.
  explicit Bpe(const BpeVocabulary& vocabulary);
  ~Bpe() override;
  /// The largest id + 1.
  int64_t size() const override { return size_; }
  std::vector<int32_t> encode(std::string_view text, const std::string& what) const override;
  /// The tokens by id in GPT-2's alphabet, "" for ids without one, and the pairs in merge order.
  std::vector<std::string> tokens() const;
  std::vector<std::string> merges() const;
  /// Ids below size() without a token decode to nothing.
  std::string decode(std::span<const int32_t> tokens) const override;

 private:
  struct Pattern;
  void read_vocabulary(const std::string& path);
  void read_merges(const std::string& path);
  void learn_bytes();
  void add_merge(std::string_view line, const std::string& place, const char* remedy);
  int32_t number_of(const std::string& token, const std::string& place) const;

  std::string name_;  // of the vocabulary, for messages
  std::unordered_map<std::string, int32_t> numbers_;
  Merges merges_;
  std::array<int32_t, 256> of_byte_ = {};  // -1: not in the vocabulary
  std::unordered_map<int32_t, std::string> bytes_of_;
  int64_t size_ = 0;
  bool drop_unknown_bytes_ = false;
  std::unordered_map<std::string, int32_t> whole_;  // by bytes; empty unless whole_pieces
  std::unique_ptr<Pattern> digits_, pattern_;       // digits_: null unless digits_alone
};

}  // namespace tutti::data
