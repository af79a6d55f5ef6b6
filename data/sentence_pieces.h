// Tokenizers of SentencePiece's kind BPE (Kudo and Richardson, 2018): pieces with scores instead of an order of merges.
#pragma once
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/tokenizer.h"

namespace tutti::data {

/// A vocabulary in memory. The views must live as long as the constructor runs.
struct PieceVocabulary {
  std::string name;                                   ///< for messages: the file
  std::vector<std::string_view> tokens;               ///< by id, with U+2581 for a space
  std::vector<float> scores;                          ///< by id
  std::vector<bool> merged;                           ///< by id: whether texts can be made of it; not control tokens
  std::vector<int> bytes;                             ///< by id: the byte that a byte token stands for, else -1
  std::function<std::string(size_t)> place_of_token;  ///< for messages
  int32_t unknown = -1;                               ///< the id for characters without a token and bytes; -1: none
  bool space_before = true;                           ///< a space is put before a text
};

/// Merges the adjacent pieces whose joint piece has the highest score, the leftmost first, starting from characters.
/// Characters without a piece become byte tokens, or the unknown token.
class TUTTI_API SentencePieces : public Tokenizer {
 public:
  /// Throws Error(invalid) naming the place: a token that occurs twice or is not UTF-8, a score that is not finite.
  explicit SentencePieces(const PieceVocabulary& vocabulary);
  int64_t size() const override { return static_cast<int64_t>(texts_.size()); }
  std::vector<int32_t> encode(std::string_view text, const std::string& what) const override;
  /// The space before a text remains.
  std::string decode(std::span<const int32_t> tokens) const override;

 private:
  struct Symbols;
  void add_piece(std::vector<int32_t>& to, std::string_view piece, const std::string& what, size_t at) const;

  std::string name_;
  std::unordered_map<std::string, int32_t> ids_;  // of pieces that texts are made of
  std::vector<float> scores_;
  std::vector<std::string> texts_;  // decoded
  int32_t of_byte_[256];
  int32_t unknown_;
  bool space_before_;
};

}  // namespace tutti::data
