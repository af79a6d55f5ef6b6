// Text as tokens: numbers of bytes, of characters or of a BPE vocabulary.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/export.h"

namespace tutti::data {

/// Text as numbers in [0, size).
class TUTTI_API Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual int64_t size() const = 0;
  /// `what` names the text in messages. Throws Error(invalid) naming the byte where it is not UTF-8, and the first
  /// character or token that the vocabulary lacks.
  virtual std::vector<int32_t> encode(std::string_view text, const std::string& what) const = 0;
  /// The bytes that the tokens stand for; a cut through a character makes them no UTF-8. Throws Error(invalid) naming
  /// the first number outside [0, size).
  virtual std::string decode(std::span<const int32_t> tokens) const = 0;

 protected:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = default;
  Tokenizer(Tokenizer&&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;
  Tokenizer& operator=(Tokenizer&&) = default;
  /// Throws decode()'s error unless token i is in [0, size).
  void check_token(std::span<const int32_t> tokens, size_t i) const;
};

/// Its bytes, whatever they encode: 256 tokens.
class TUTTI_API Bytes : public Tokenizer {
 public:
  int64_t size() const override { return 256; }
  std::vector<int32_t> encode(std::string_view text, const std::string& what) const override;
  std::string decode(std::span<const int32_t> tokens) const override;
};

/// Its characters (UTF-8), numbered in the order of their code points.
class TUTTI_API Characters : public Tokenizer {
 public:
  /// Those of that text, which `what` names. Throws Error(invalid) as encode() does.
  explicit Characters(std::string_view text, const std::string& what = "the text");
  int64_t size() const override { return static_cast<int64_t>(known_.size()); }
  std::vector<int32_t> encode(std::string_view text, const std::string& what) const override;
  std::string decode(std::span<const int32_t> tokens) const override;
  /// One of each, in order: a text that makes the same tokenizer.
  const std::string& vocabulary() const { return vocabulary_; }

 private:
  std::vector<char32_t> known_;  // sorted
  std::string vocabulary_;
};

/// The code points of UTF-8 (RFC 3629). Throws Error(invalid) naming `what` and the byte where it is none.
TUTTI_API std::vector<char32_t> code_points(std::string_view text, const std::string& what);
/// One code point as UTF-8.
TUTTI_API std::string utf8(char32_t c);

}  // namespace tutti::data
