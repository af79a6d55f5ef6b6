// Text as tokens: tokenizers, and a source of windows over a stream of tokens.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/export.h"
#include "data/source.h"

namespace tutti::data {

/// A stream of tokens cut into samples of `context` tokens, one after the other: the columns "tokens" and "next", both
/// i32 [context], the second one token further.
class TUTTI_API TokenStream : public Source {
 public:
  /// Throws Error(invalid) where the stream holds no whole sample.
  TokenStream(std::string name, std::vector<int32_t> tokens, int64_t context, int64_t vocabulary);
  int64_t size() const override;
  std::vector<Column> columns() const override;
  std::vector<Table> tables() const override;

 private:
  std::vector<int32_t> tokens_;
  int64_t context_, vocabulary_;
};

/// The characters of a text as numbers, in the order of their code points.
class TUTTI_API Characters {
 public:
  /// Those of that text (UTF-8). Throws Error(invalid) naming the byte where it is no UTF-8.
  explicit Characters(std::string_view text);
  int64_t size() const { return static_cast<int64_t>(known_.size()); }
  /// Throws Error(invalid) naming the character that the vocabulary lacks, and its byte.
  std::vector<int32_t> encode(std::string_view text) const;

 private:
  std::vector<char32_t> known_;  // sorted
};

/// The code points of UTF-8 (RFC 3629). Throws Error(invalid) naming `what` and the byte where it is none.
TUTTI_API std::vector<char32_t> code_points(std::string_view text, const std::string& what);

}  // namespace tutti::data
