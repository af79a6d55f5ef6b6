// Tokenizers in Hugging Face's tokenizer.json.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/export.h"
#include "data/tokenizer.h"

namespace tutti::data {

/// BPE, WordPiece, Unigram or WordLevel with the normalizers, pre-tokenizers, post-processors and decoders of the
/// `tokenizers` library: the same ids as its encode(), with the special tokens that its post-processor adds.
class TUTTI_API HfTokenizer : public Tokenizer {
 public:
  /// Reads FOLDER/tokenizer.json, and the end tokens of generation_config.json or config.json beside it. Like
  /// transformers, it ignores add_bos_token and add_eos_token of tokenizer_config.json: the post-processor of
  /// tokenizer.json decides. Throws Error(invalid) naming file, key and value for damage and for every part that is not
  /// supported.
  explicit HfTokenizer(const std::string& folder);
  /// Reads the text of a tokenizer.json; `path` names it in messages.
  HfTokenizer(const std::string& text, const std::string& path);
  ~HfTokenizer() override;
  int64_t size() const override { return size_; }
  std::vector<int32_t> encode(std::string_view text, const std::string& what) const override;
  /// Special tokens are written as text.
  std::string decode(std::span<const int32_t> tokens) const override;
  /// The tokens at which generation ends.
  const std::set<int32_t>& ends() const { return ends_; }

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
  std::unordered_map<int32_t, std::string> texts_;
  std::set<int32_t> ends_;
  int64_t size_ = 0;
};

}  // namespace tutti::data
