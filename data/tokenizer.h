// Tokenizers: text as ids of bytes, of characters or of a BPE vocabulary.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/export.h"

namespace tutti::data {

/// Converts text to ids in [0, size) and back.
class TUTTI_API Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual int64_t size() const = 0;
  /// `what` names the text in messages. Throws Error(invalid) naming the byte where the text is not UTF-8, and the
  /// first character or token that is not in the vocabulary.
  virtual std::vector<int32_t> encode(std::string_view text, const std::string& what) const = 0;
  /// The text of the tokens. It may be invalid UTF-8 if it begins or ends within a character. Throws Error(invalid)
  /// naming the first id outside [0, size).
  virtual std::string decode(std::span<const int32_t> tokens) const = 0;

 protected:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = default;
  Tokenizer(Tokenizer&&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;
  Tokenizer& operator=(Tokenizer&&) = default;
  /// Throws the error of decode() unless token i is in [0, size).
  void check_token(std::span<const int32_t> tokens, size_t i) const;
};

/// One token per byte, of any encoding: 256 tokens.
class TUTTI_API Bytes : public Tokenizer {
 public:
  int64_t size() const override { return 256; }
  std::vector<int32_t> encode(std::string_view text, const std::string& what) const override;
  std::string decode(std::span<const int32_t> tokens) const override;
};

/// One token per character (UTF-8), numbered by code point order.
class TUTTI_API Characters : public Tokenizer {
 public:
  /// The characters of that text; `what` names it in messages. Throws Error(invalid) like encode().
  explicit Characters(std::string_view text, const std::string& what = "the text");
  int64_t size() const override { return static_cast<int64_t>(known_.size()); }
  std::vector<int32_t> encode(std::string_view text, const std::string& what) const override;
  std::string decode(std::span<const int32_t> tokens) const override;
  /// Every character once, in order: a text that constructs the same tokenizer.
  const std::string& vocabulary() const { return vocabulary_; }

 private:
  std::vector<char32_t> known_;  // sorted
  std::string vocabulary_;
};

/// The code points of UTF-8 (RFC 3629). Throws Error(invalid) naming `what` and the byte if it is not UTF-8.
TUTTI_API std::vector<char32_t> code_points(std::string_view text, const std::string& what);
/// One code point as UTF-8.
TUTTI_API std::string utf8(char32_t c);

/// The byte of a token like "<0x0A>"; -1 for others.
int byte_of_token(std::string_view token);

}  // namespace tutti::data
