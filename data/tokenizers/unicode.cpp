#include "data/tokenizers/unicode.h"

#include <fmt/format.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#ifdef TUTTI_HAS_ICU
#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>
#endif

#include "core/base/printable.h"
#include "core/base/status.h"
#include "data/tokenizer.h"

namespace tutti::data {
namespace {

constexpr const char* white_space = R"(\t-\r\x{85}\p{Z})";

/// Rewrites a pattern of Oniguruma's syntax for PCRE2. What the two read otherwise is refused.
class Translation {
 public:
  Translation(const std::string& pattern, const std::string& place) : pattern_(pattern), place_(place) {
    for (at_ = 0; at_ < pattern.size(); ++at_) {
      if (pattern[at_] == '\\' && at_ + 1 < pattern.size())
        escape(pattern[++at_]);
      else if (in_class_)
        inside(pattern[at_]);
      else
        outside(pattern[at_]);
    }
  }
  const std::string& text() const { return out_; }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw invalid(fmt::format("{}: {} of the pattern '{}' is not supported", place_, what, printable(pattern_, 100)),
                  "use another tokenizer");
  }

  void outside(char c) {
    out_ += c;
    if (c == '(') check_flags();
    if (c != '[') return;
    in_class_ = true;
    if (pattern_.compare(at_ + 1, 1, "^") == 0) out_ += pattern_[++at_];
    if (pattern_.compare(at_ + 1, 1, "]") == 0) out_ += pattern_[++at_];  // the first one is a character
  }

  /// (?m) lets the dot match line ends in Oniguruma, and ^ and $ match at lines in PCRE2.
  void check_flags() const {
    if (pattern_.compare(at_ + 1, 1, "?") != 0) return;
    size_t end = pattern_.find_first_not_of("-imsx", at_ + 2);
    if (end == std::string::npos || (pattern_[end] != ')' && pattern_[end] != ':')) return;
    const std::string flags = pattern_.substr(at_ + 2, end - at_ - 2);
    if (flags.find_first_of("ms") != std::string::npos) refuse(fmt::format("the option (?{})", flags));
  }

  /// In a class, Oniguruma reads [ and && as set operations. The classes in [: :] are Unicode's there, ASCII here.
  void inside(char c) {
    if (c == '[') refuse("'[' within a character class");
    if (c == '&' && pattern_.compare(at_ + 1, 1, "&") == 0) refuse("'&&' within a character class");
    if (c == ']') in_class_ = false;
    out_ += c;
  }

  void escape(char e) {
    if (e == 's') {
      out_ += in_class_ ? white_space : fmt::format("[{}]", white_space);
    } else if (e == 'S') {
      if (in_class_) refuse(R"(the escape \S)");
      out_ += fmt::format("[^{}]", white_space);
    } else if (e == 'd') {
      out_ += R"(\p{Nd})";
    } else if (e == 'w' && !in_class_) {
      out_ += R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}])";
    } else if (std::string_view("pPrntxuf").find(e) != std::string_view::npos ||
               !((e >= 'a' && e <= 'z') || (e >= 'A' && e <= 'Z') || (e >= '0' && e <= '9'))) {
      out_ += '\\';
      out_ += e;
    } else {
      refuse(fmt::format("the escape \\{}", e));
    }
  }

  const std::string &pattern_, &place_;
  std::string out_;
  size_t at_ = 0;
  bool in_class_ = false;
};

}  // namespace

struct Regex::Code {
  Code(const std::string& pattern, uint32_t options, const std::string& place) {
    int error = 0;
    PCRE2_SIZE at = 0;
    std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
        pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
    if (context) pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);  // else the default of PCRE2's build
    code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options | PCRE2_UTF, &error, &at,
                         context.get());
    if (!code) {
      PCRE2_UCHAR why[128] = {};
      pcre2_get_error_message(error, why, sizeof why);
      throw invalid(fmt::format("{}: the pattern '{}' does not compile: {}", place, printable(pattern, 100),
                                reinterpret_cast<const char*>(why)),
                    "use another tokenizer");
    }
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without JIT matching is slower, with the same result
  }
  ~Code() { pcre2_code_free(code); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  pcre2_code* code;
};

Regex::Regex(const std::string& pattern, const std::string& place)
    : code_(std::make_shared<const Code>(Translation(pattern, place).text(), PCRE2_MULTILINE, place)) {}

Regex Regex::literal(const std::string& text) {
  Regex r("x", "");
  r.code_ = std::make_shared<const Code>(text, PCRE2_LITERAL, "");
  return r;
}

std::vector<Part> Regex::parts(std::string_view text) const {
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> found(
      pcre2_match_data_create_from_pattern(code_->code, nullptr), pcre2_match_data_free);
  std::vector<Part> all;
  size_t done = 0, at = 0;
  while (at < text.size()) {
    int count = pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at, PCRE2_NO_UTF_CHECK,
                            found.get(), nullptr);
    if (count == PCRE2_ERROR_JIT_STACKLIMIT)
      count = pcre2_match(code_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                          PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, found.get(), nullptr);
    if (count == PCRE2_ERROR_NOMATCH) break;
    if (count < 0)
      throw invalid(fmt::format("the tokenizer's pattern fails at byte {} of the text (PCRE2 error {})", at, count),
                    "use a shorter text, or another tokenizer");
    const PCRE2_SIZE* place = pcre2_get_ovector_pointer(found.get());
    if (place[1] == place[0]) {  // empty: go on after the next character
      at = place[1] + 1;
      while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) ++at;
      continue;
    }
    if (place[0] > done) all.push_back({done, place[0], false});
    all.push_back({place[0], place[1], true});
    at = done = place[1];
  }
  if (done < text.size()) all.push_back({done, text.size(), false});
  return all;
}

std::string Regex::replace(std::string_view text, const std::string& by) const {
  std::string out;
  for (const Part& p : parts(text)) out += p.match ? by : std::string(text.substr(p.begin, p.end - p.begin));
  return out;
}

#ifdef TUTTI_HAS_ICU

bool has_normalization() { return true; }

std::string normalized(const std::string& text, const std::string& form) {
  UErrorCode error = U_ZERO_ERROR;
  const UNormalizer2* n = form == "NFC"    ? unorm2_getNFCInstance(&error)
                          : form == "NFD"  ? unorm2_getNFDInstance(&error)
                          : form == "NFKC" ? unorm2_getNFKCInstance(&error)
                                           : unorm2_getNFKDInstance(&error);
  if (text.size() > (size_t{1} << 28)) throw invalid("a text of more than 256 MiB cannot be normalized", "divide it");
  std::vector<UChar> from(text.size() + 1), to;
  int32_t length = 0, written = 0;
  u_strFromUTF8(from.data(), static_cast<int32_t>(from.size()), &length, text.data(), static_cast<int32_t>(text.size()),
                &error);
  written = unorm2_normalize(n, from.data(), length, nullptr, 0, &error);
  if (error == U_BUFFER_OVERFLOW_ERROR) error = U_ZERO_ERROR;
  to.resize(static_cast<size_t>(written) + 1);
  written = unorm2_normalize(n, from.data(), length, to.data(), static_cast<int32_t>(to.size()), &error);
  std::string out(static_cast<size_t>(written) * 3 + 1, '\0');
  int32_t bytes = 0;
  u_strToUTF8(out.data(), static_cast<int32_t>(out.size()), &bytes, to.data(), written, &error);
  if (U_FAILURE(error)) throw Error(Code::internal, fmt::format("ICU cannot normalize a text: {}", u_errorName(error)));
  out.resize(static_cast<size_t>(bytes));
  return out;
}

std::string lower_case(const std::string& text) {
  std::string out;
  for (char32_t c : code_points(text, "the text"))
    out += c == 0x130 ? "i\xcc\x87" : utf8(static_cast<char32_t>(u_tolower(static_cast<UChar32>(c))));
  return out;
}

#else

bool has_normalization() { return false; }

std::string normalized(const std::string&, const std::string& form) {
  throw invalid(fmt::format("the tokenizer needs {}, but Tutti is built without ICU", form),
                "build Tutti with ICU: apt install libicu-dev");
}

std::string lower_case(const std::string& text) { return normalized(text, "lower case"); }

#endif

}  // namespace tutti::data
