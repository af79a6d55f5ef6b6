// The tokenizer stored in a GGUF file.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/bpe.h"
#include "data/files/gguf.h"

namespace tutti::data {

/// Values of tokenizer.ggml.token_type (llama.cpp's llama_token_type).
namespace gguf_token {
constexpr int32_t normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6;
}

/// Model "gpt2": byte-level BPE with one of bpe_splits() as pre-tokenizer; bytes without a token are dropped, as in the
/// original tokenizers of such files. Model "llama": SentencePieces. Special tokens (control, user-defined and unknown
/// ones) are matched anywhere in a text, the longest first; the text between them is encoded separately. No begin or
/// end token is added.
class TUTTI_API GgufTokenizer : public Tokenizer {
 public:
  /// Throws Error(invalid) naming file, byte and expectation: another model or pre-tokenizer, arrays of different
  /// lengths, a duplicate token, a merge whose token is missing, a special token id outside the vocabulary.
  explicit GgufTokenizer(const Gguf& file);
  int64_t size() const override { return inner_->size(); }
  std::vector<int32_t> encode(std::string_view text, const std::string& what) const override;
  /// Special tokens are written as text. The space that SentencePieces put before a text is not written.
  std::string decode(std::span<const int32_t> tokens) const override;

  /// The ids of the begin, end, padding and unknown tokens, if the file defines them.
  std::optional<int32_t> begin() const { return begin_; }
  std::optional<int32_t> end() const { return end_; }
  std::optional<int32_t> padding() const { return padding_; }
  std::optional<int32_t> unknown() const { return unknown_; }
  /// The tokens at which generation ends: the ends of the text, of a turn and of a message, if the file defines them.
  const std::set<int32_t>& ends() const { return ends_; }
  /// Whether the model expects begin() before every text.
  bool adds_begin() const { return adds_begin_; }
  /// Whether a token is matched as a whole instead of built by merges.
  bool is_special(int32_t token) const { return special_texts_.count(token) > 0; }
  /// The chat template in Jinja's language; "" if the file has none.
  const std::string& chat_template() const { return chat_template_; }

 private:
  void read_bpe(const Gguf& file);
  void read_pieces(const Gguf& file);
  void read_specials(const Gguf& file);

  std::unique_ptr<Tokenizer> inner_;
  bool drops_space_ = false;  // the decoded text begins with a space that was put there
  std::unordered_map<int32_t, std::string> special_texts_;
  std::map<std::string, int32_t, std::less<>> specials_;
  std::vector<size_t> lengths_;  // of special tokens, in descending order
  bool starts_special_[256] = {};
  std::optional<int32_t> begin_, end_, padding_, unknown_;
  std::set<int32_t> ends_;
  bool adds_begin_ = false;
  std::string chat_template_;
};

}  // namespace tutti::data
