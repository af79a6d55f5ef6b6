#include "data/sentence_pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <queue>

#include "core/base/status.h"

namespace tutti::data {
namespace {

constexpr std::string_view space = "\xe2\x96\x81";  // U+2581
const char* const vocabulary_remedy = "use a file with a complete tokenizer";

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at = 0; at < text.size();)
    if (text.substr(at).starts_with(from)) {
      out += to;
      at += from.size();
    } else {
      out += text[at++];
    }
  return out;
}

}  // namespace

SentencePieces::SentencePieces(const PieceVocabulary& v)
    : name_(v.name), scores_(v.scores), unknown_(v.unknown), space_before_(v.space_before) {
  std::ranges::fill(of_byte_, -1);
  for (size_t i = 0; i < v.tokens.size(); ++i) {
    const auto n = static_cast<int32_t>(i);
    std::string token(v.tokens[i]);
    code_points(token, v.place_of_token(i));
    if (!std::isfinite(v.scores[i]))
      throw invalid(fmt::format("{}: the score of '{}' is {}", v.place_of_token(i), token, v.scores[i]),
                    vocabulary_remedy);
    if (v.bytes[i] >= 0) of_byte_[v.bytes[i]] = n;
    texts_.push_back(v.bytes[i] >= 0 ? std::string(1, static_cast<char>(v.bytes[i])) : replaced(token, space, " "));
    if (!v.merged[i]) continue;
    if (auto [it, fresh] = ids_.emplace(token, n); !fresh)
      throw invalid(fmt::format("{}: tokens {} and {} are both '{}'", v.place_of_token(i), it->second, n, token),
                    vocabulary_remedy);
  }
}

/// A text as a linked list of pieces, with the possible merges in a heap: O(n log n).
struct SentencePieces::Symbols {
  struct Candidate {
    float score;
    size_t left, bytes;  ///< of both pieces
    bool operator<(const Candidate& o) const { return score != o.score ? score < o.score : left > o.left; }
  };
  static constexpr size_t none = SIZE_MAX;
  const SentencePieces& own;
  std::string_view text;
  // By position of the first byte of a piece: its length (0: no piece begins here), and where its neighbours begin.
  std::vector<size_t> length, before, after;
  std::priority_queue<Candidate> queue;

  Symbols(const SentencePieces& pieces, std::string_view t)
      : own(pieces), text(t), length(t.size() + 1), before(t.size() + 1, none), after(t.size() + 1, none) {
    size_t last = none;
    for (size_t at = 0; at < text.size();) {
      size_t end = at + 1;
      while (end < text.size() && (text[end] & 0xC0) == 0x80) ++end;
      length[at] = end - at;
      before[at] = last;
      after[at] = end < text.size() ? end : none;
      last = at;
      at = end;
    }
  }

  void consider(size_t left) {
    if (left == none || after[left] == none) return;
    const size_t bytes = length[left] + length[after[left]];
    auto it = own.ids_.find(std::string(text.substr(left, bytes)));
    if (it != own.ids_.end()) queue.push({own.scores_[static_cast<size_t>(it->second)], left, bytes});
  }

  void merge() {
    for (size_t at = 0; at < text.size(); ++at)
      if (length[at] > 0) consider(at);
    while (!queue.empty()) {
      const Candidate c = queue.top();
      queue.pop();
      const size_t right = after[c.left];
      if (length[c.left] == 0 || right == none || length[c.left] + length[right] != c.bytes) continue;  // stale
      length[c.left] = c.bytes;
      length[right] = 0;
      after[c.left] = after[right];
      if (after[right] != none) before[after[right]] = c.left;
      consider(c.left);
      consider(before[c.left]);
    }
  }
};

void SentencePieces::add_piece(std::vector<int32_t>& to, std::string_view piece, const std::string& what,
                               size_t at) const {
  if (auto it = ids_.find(std::string(piece)); it != ids_.end()) {
    to.push_back(it->second);
    return;
  }
  auto id_of = [&](char c) { return of_byte_[static_cast<unsigned char>(c)]; };
  if (std::ranges::all_of(piece, [&](char c) { return id_of(c) >= 0; })) {
    for (char c : piece) to.push_back(id_of(c));
    return;
  }
  if (unknown_ < 0)
    throw invalid(fmt::format("{}, near byte {}: {} has no token for '{}'", what, at, name_, piece),
                  "use a vocabulary with byte tokens or an unknown token, or another text");
  to.push_back(unknown_);
}

std::vector<int32_t> SentencePieces::encode(std::string_view text, const std::string& what) const {
  code_points(text, what);
  if (text.empty()) return {};
  const std::string escaped = (space_before_ ? std::string(space) : "") + replaced(text, " ", space);
  Symbols symbols(*this, escaped);
  symbols.merge();
  std::vector<int32_t> tokens;
  for (size_t at = 0; at < escaped.size(); at += symbols.length[at])
    add_piece(tokens, std::string_view(escaped).substr(at, symbols.length[at]), what, at);
  return tokens;
}

std::string SentencePieces::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    check_token(tokens, i);
    text += texts_[static_cast<size_t>(tokens[i])];
  }
  return text;
}

}  // namespace tutti::data
