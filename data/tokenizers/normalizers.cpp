// Normalizers of tokenizer.json.
#include <fmt/format.h>

#include "core/base/printable.h"
#include "core/base/status.h"
#include "data/tokenizer.h"
#include "data/tokenizers/stages.h"
#include "data/tokenizers/unicode.h"

namespace tutti::data {
namespace {

using nlohmann::json;

const char* const space = R"([\t-\r\x{85}\p{Z}])";

void expect_icu(const std::string& place, const std::string& what) {
  if (!has_normalization())
    throw invalid(fmt::format("{}: {} needs Unicode tables, but Tutti is built without ICU", place, what),
                  "build Tutti with ICU (apt install libicu-dev)");
}

/// What a Replace or Split looks for.
Regex pattern_of(const json& j, const std::string& place) {
  if (!j.contains("pattern") || !j["pattern"].is_object()) fail_at(place, "'pattern' is missing");
  const json& p = j["pattern"];
  if (p.contains("String")) return Regex::literal(text_at(p, "String", place));
  return Regex(text_at(p, "Regex", place), place);
}

/// BERT's: control characters go, white space becomes a space, Chinese characters get spaces around them.
Normalizer bert(const json& j, const std::string& place) {
  const bool clean = flag_at(j, "clean_text", place, true), chinese = flag_at(j, "handle_chinese_chars", place, true);
  const bool lower = flag_at(j, "lowercase", place, true), strip = flag_at(j, "strip_accents", place, lower);
  if (strip || lower) expect_icu(place, "BertNormalizer");
  const Regex control(R"([\x{fffd}]|(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}])", place), blank(space, place);
  const Regex cjk(R"([\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{20000}-\x{2a6df}\x{2a700}-\x{2b73f}\x{2b740}-\x{2b81f})"
                  R"(\x{2b920}-\x{2ceaf}\x{f900}-\x{faff}\x{2f800}-\x{2fa1f}])",
                  place);
  const Regex marks(R"(\p{Mn})", place);
  return [=](std::string text) {
    if (clean) text = blank.replace(control.replace(text, ""), " ");
    if (chinese) {
      std::string out;
      for (const Part& p : cjk.parts(text)) {
        std::string part = text.substr(p.begin, p.end - p.begin);
        out += p.match ? " " + part + " " : part;
      }
      text = out;
    }
    if (strip) text = marks.replace(normalized(text, "NFD"), "");
    return lower ? lower_case(text) : text;
  };
}

Normalizer strip(const json& j, const std::string& place) {
  const bool left = flag_at(j, "strip_left", place, true), right = flag_at(j, "strip_right", place, true);
  const Regex blank(fmt::format("{}+", space), place);
  return [=](const std::string& text) {
    std::vector<Part> parts = blank.parts(text);
    size_t begin = 0, end = text.size();
    if (left && !parts.empty() && parts.front().match) begin = parts.front().end;
    if (right && !parts.empty() && parts.back().match && parts.back().begin >= begin) end = parts.back().begin;
    return text.substr(begin, end - begin);
  };
}

}  // namespace

Normalizer read_normalizer(const json& j, const std::string& place) {
  if (j.is_null()) return [](std::string text) { return text; };
  const std::string type = type_of(j, place), here = place + ": " + printable(type, 40);
  if (type == "Sequence") {
    if (!j.contains("normalizers") || !j["normalizers"].is_array()) fail_at(here, "'normalizers' is missing");
    std::vector<Normalizer> all;
    for (const json& one : j["normalizers"]) all.push_back(read_normalizer(one, place));
    return [all](std::string text) {
      for (const Normalizer& n : all) text = n(std::move(text));
      return text;
    };
  }
  if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    expect_icu(place, type);
    return [type](const std::string& text) { return normalized(text, type); };
  }
  if (type == "Lowercase") {
    expect_icu(place, type);
    return lower_case;
  }
  if (type == "StripAccents") {
    const Regex marks(R"(\p{M})", here);
    return [marks](const std::string& text) { return marks.replace(text, ""); };
  }
  if (type == "Strip") return strip(j, here);
  if (type == "Replace") {
    const Regex what = pattern_of(j, here);
    return [what, by = text_at(j, "content", here)](const std::string& text) { return what.replace(text, by); };
  }
  if (type == "Prepend")
    return [what = text_at(j, "prepend", here)](const std::string& text) { return text.empty() ? text : what + text; };
  if (type == "BertNormalizer") return bert(j, here);
  fail_at(here, "normalizers of this type are not supported");
}

}  // namespace tutti::data
