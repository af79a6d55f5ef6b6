// The tokenizer that a GGUF file brings along.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/bpe.h"
#include "data/files/gguf.h"

namespace tutti::data {

/// Byte-level BPE with special tokens: model "gpt2", pre-tokenizer "smollm" (every digit alone, then GPT-2's pieces) or
/// "gpt-2". Special tokens (control, user-defined and unknown ones) are found in a text wherever they are written, the
/// longest first, and what lies between is encoded by itself. Bytes without a token are dropped, as by the tokenizer
/// that such files were made from. No begin or end is added.
class TUTTI_API GgufTokenizer : public Tokenizer {
 public:
  /// Throws Error(invalid) naming file, byte and expectation: another model or pre-tokenizer, arrays of different
  /// lengths, a text that two tokens have, a merge whose token is missing, a special number outside the vocabulary.
  explicit GgufTokenizer(const Gguf& file);
  int64_t size() const override { return bpe_->size(); }
  std::vector<int32_t> encode(std::string_view text, const std::string& what) const override;
  /// Special tokens are written out.
  std::string decode(std::span<const int32_t> tokens) const override;

  /// The numbers of the tokens with which texts begin and end, of padding and of what is unknown, where the file tells.
  std::optional<int32_t> begin() const { return begin_; }
  std::optional<int32_t> end() const { return end_; }
  std::optional<int32_t> padding() const { return padding_; }
  std::optional<int32_t> unknown() const { return unknown_; }
  /// Whether the model expects begin() before every text.
  bool adds_begin() const { return adds_begin_; }
  /// Whether a token is cut out of texts rather than merged.
  bool is_special(int32_t token) const { return special_texts_.count(token) > 0; }
  /// The chat template, a text in Jinja's language; "": the file has none.
  const std::string& chat_template() const { return chat_template_; }

 private:
  std::unique_ptr<Bpe> bpe_;
  std::unordered_map<int32_t, std::string> special_texts_;
  std::map<std::string, int32_t, std::less<>> specials_;
  std::vector<size_t> lengths_;  // of special tokens, the longest first
  bool starts_special_[256] = {};
  std::optional<int32_t> begin_, end_, padding_, unknown_;
  bool adds_begin_ = false;
  std::string chat_template_;
};

}  // namespace tutti::data
