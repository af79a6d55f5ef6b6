// Pre-tokenizers of tokenizer.json.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/printable.h"
#include "core/base/status.h"
#include "data/bpe.h"
#include "data/tokenizers/stages.h"
#include "data/tokenizers/unicode.h"

namespace tutti::data {
namespace {

using nlohmann::json;

enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Behavior behavior_of(const json& j, const std::string& place, const std::string& otherwise) {
  std::string name = text_at(j, "behavior", place, otherwise);
  const std::vector<std::string> names = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
  auto it = std::ranges::find(names, name);
  if (it == names.end()) fail_at(place, fmt::format("unknown behavior '{}'", printable(name, 40)));
  return static_cast<Behavior>(it - names.begin());
}

/// Joins the parts of a text as the behavior says.
std::vector<Part> joined(std::vector<Part> parts, Behavior behavior) {
  std::vector<Part> all;
  if (behavior == Behavior::merged_with_next) std::ranges::reverse(parts);
  bool before = false;
  for (const Part& p : parts) {
    bool join = false;
    if (behavior == Behavior::removed && p.match) continue;
    if (behavior == Behavior::contiguous) join = !all.empty() && all.back().match == p.match;
    if (behavior == Behavior::merged_with_previous || behavior == Behavior::merged_with_next)
      join = !all.empty() && p.match && !before;
    before = p.match;
    if (!join) {
      all.push_back(p);
    } else {
      all.back().begin = std::min(all.back().begin, p.begin);
      all.back().end = std::max(all.back().end, p.end);
    }
  }
  if (behavior == Behavior::merged_with_next) std::ranges::reverse(all);
  return all;
}

void split(Pieces& pieces, const Regex& pattern, Behavior behavior, bool invert = false) {
  Pieces all;
  for (const Piece& piece : pieces) {
    std::vector<Part> parts = pattern.parts(piece.text);
    if (invert)
      for (Part& p : parts) p.match = !p.match;
    for (const Part& p : joined(std::move(parts), behavior))
      if (p.end > p.begin) all.push_back({piece.text.substr(p.begin, p.end - p.begin), piece.first && p.begin == 0});
  }
  pieces = std::move(all);
}

Splitter splitting(const Regex& pattern, Behavior behavior, bool invert = false) {
  return [=](Pieces& pieces) { split(pieces, pattern, behavior, invert); };
}

Splitter byte_level(const json& j, const std::string& place) {
  const bool prefix = flag_at(j, "add_prefix_space", place, true), cut = flag_at(j, "use_regex", place, true);
  const Regex words(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", place);
  return [=](Pieces& pieces) {
    if (prefix)
      for (Piece& p : pieces)
        if (!p.text.starts_with(' ')) p.text.insert(0, " ");
    if (cut) split(pieces, words, Behavior::isolated);
    for (Piece& p : pieces) {
      std::string characters;
      for (char c : p.text) characters += byte_alphabet()[static_cast<unsigned char>(c)];
      p.text = std::move(characters);
    }
  };
}

Splitter metaspace(const json& j, const std::string& place) {
  const std::string mark = text_at(j, "replacement", place, "\xe2\x96\x81");
  const std::string usual = flag_at(j, "add_prefix_space", place, true) ? "always" : "never";
  const std::string scheme = text_at(j, "prepend_scheme", place, usual);
  if (scheme != "always" && scheme != "never" && scheme != "first")
    fail_at(place, fmt::format("unknown prepend_scheme '{}'", printable(scheme, 40)));
  const bool cut = flag_at(j, "split", place, true);
  const Regex blank = Regex::literal(" "), at = Regex::literal(mark);
  return [=](Pieces& pieces) {
    for (Piece& p : pieces) {
      p.text = blank.replace(p.text, mark);
      if ((scheme == "always" || (scheme == "first" && p.first)) && !p.text.starts_with(mark)) p.text.insert(0, mark);
    }
    if (cut) split(pieces, at, Behavior::merged_with_next);
  };
}

Splitter chain(std::vector<Splitter> all) {
  return [all = std::move(all)](Pieces& pieces) {
    for (const Splitter& s : all) s(pieces);
  };
}

}  // namespace

Splitter read_splitter(const json& j, const std::string& place) {
  if (j.is_null()) return [](Pieces&) {};
  const std::string type = type_of(j, place), here = place + ": " + printable(type, 40);
  const char *space = R"([\t-\r\x{85}\p{Z}])", *punctuation = R"([!-\/:-@\[-`{-~\p{P}])";
  if (type == "Sequence") {
    if (!j.contains("pretokenizers") || !j["pretokenizers"].is_array()) fail_at(here, "'pretokenizers' is missing");
    std::vector<Splitter> all;
    for (const json& one : j["pretokenizers"]) all.push_back(read_splitter(one, place));
    return chain(std::move(all));
  }
  if (type == "ByteLevel") return byte_level(j, here);
  if (type == "Metaspace") return metaspace(j, here);
  if (type == "Split") {
    if (!j.contains("pattern") || !j["pattern"].is_object()) fail_at(here, "'pattern' is missing");
    const json& p = j["pattern"];
    const Regex pattern =
        p.contains("String") ? Regex::literal(text_at(p, "String", here)) : Regex(text_at(p, "Regex", here), here);
    return splitting(pattern, behavior_of(j, here, ""), flag_at(j, "invert", here, false));
  }
  if (type == "BertPreTokenizer")
    return chain(
        {splitting(Regex(space, here), Behavior::removed), splitting(Regex(punctuation, here), Behavior::isolated)});
  if (type == "Punctuation") return splitting(Regex(punctuation, here), behavior_of(j, here, "Isolated"));
  if (type == "Digits")
    return splitting(Regex(R"(\p{N})", here),
                     flag_at(j, "individual_digits", here, false) ? Behavior::isolated : Behavior::contiguous);
  if (type == "Whitespace")  // words, and runs of what is neither word nor space
    return splitting(Regex(R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}]+|)"
                           R"([^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}\t-\r\x{85}\p{Z}]+)",
                           here),
                     Behavior::removed, true);
  if (type == "WhitespaceSplit") return splitting(Regex(space, here), Behavior::removed);
  if (type == "CharDelimiterSplit") return splitting(Regex::literal(text_at(j, "delimiter", here)), Behavior::removed);
  fail_at(here, "pre-tokenizers of this type are not supported");
}

}  // namespace tutti::data
