// Unicode text for tokenizers: regular expressions by PCRE2, and normalization by ICU where Tutti is built with it.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::data {

/// A part of a text: whether a pattern matches it.
struct Part {
  size_t begin, end;
  bool match;
};

/// A regular expression over UTF-8 in the dialect of tokenizer.json (Oniguruma): \s is Unicode's White_Space and \d is
/// \p{Nd}, and ^ and $ match at lines.
class Regex {
 public:
  /// Throws Error(invalid) naming `place` for a pattern that does not compile, and for parts whose meaning differs.
  Regex(const std::string& pattern, const std::string& place);
  /// One that finds a text.
  static Regex literal(const std::string& text);
  /// The parts of the text, matching or not, in order and without gaps; empty matches are left out.
  std::vector<Part> parts(std::string_view text) const;
  std::string replace(std::string_view text, const std::string& by) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
};

/// Whether the build can normalize; without, such tokenizers are refused.
bool has_normalization();
/// "NFC", "NFD", "NFKC" or "NFKD" of UTF-8.
std::string normalized(const std::string& text, const std::string& form);
/// Lower case, character by character. Needs ICU for characters beyond ASCII.
std::string lower_case(const std::string& text);

}  // namespace tutti::data
