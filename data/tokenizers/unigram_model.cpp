// The unigram language model (Kudo, 2018): the likeliest division of a text into pieces.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "core/base/printable.h"
#include "core/base/status.h"
#include "data/tokenizer.h"
#include "data/tokenizers/models.h"
#include "data/tokenizers/stages.h"

namespace tutti::data {
namespace {

using nlohmann::json;

class UnigramModel : public PieceModel {
 public:
  UnigramModel(const json& j, const std::string& place) {
    if (!j.contains("vocab") || !j["vocab"].is_array() || j["vocab"].empty())
      fail_at(place, "'vocab' is missing or empty");
    double least = std::numeric_limits<double>::infinity();
    for (const json& one : j["vocab"]) {
      if (!one.is_array() || one.size() != 2 || !one[0].is_string() || !one[1].is_number())
        fail_at(place, fmt::format("vocab[{}] is not a token with its score", scores_.size()));
      const std::string token = one[0];
      vocabulary_[token] = static_cast<int32_t>(scores_.size());
      scores_.push_back(one[1]);
      least = std::min(least, scores_.back());
      longest_ = std::max(longest_, token.size());
    }
    const json unknown = j.value("unk_id", json());
    if (!unknown.is_null() && !(unknown.is_number_unsigned() && unknown < scores_.size()))
      fail_at(place, "'unk_id' is not the number of a token");
    if (!unknown.is_null()) unknown_ = unknown.get<int32_t>();
    byte_fallback_ = flag_at(j, "byte_fallback", place, false);
    unknown_score_ = least - 10;
  }

  void encode(const std::string& piece, std::vector<int32_t>& tokens) const override {
    for (const auto& [begin, end, known] : best(piece)) {
      const std::string text = piece.substr(begin, end - begin);
      if (const int32_t* n = known ? find(text) : nullptr) {
        tokens.push_back(*n);
      } else if (!(byte_fallback_ && encode_bytes(text, tokens))) {
        if (!unknown_)
          throw invalid(fmt::format("the tokenizer has no token for '{}'", printable(text, 40)), "use another text");
        tokens.push_back(*unknown_);
      }
    }
  }

 private:
  struct Span {
    size_t begin, end;
    bool known;
  };

  /// The best path, with neighbouring unknown characters as one span.
  std::vector<Span> best(const std::string& text) const {
    struct Node {
      double score = 0;
      size_t from = std::string::npos;
      bool known = false;
    };
    const size_t n = text.size();
    std::vector<Node> nodes(n + 1);
    for (size_t at = 0, next; at < n; at = next) {
      next = at + 1;
      while (next < n && (static_cast<unsigned char>(text[next]) & 0xc0) == 0x80) ++next;
      bool single = false;
      auto offer = [&](size_t end, double score, bool known) {
        Node& node = nodes[end];
        if (node.from == std::string::npos || score > node.score) node = {score, at, known};
      };
      for (size_t end = next; end <= n && end - at <= longest_; ++end) {
        if (end < n && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) continue;
        const int32_t* number = find(text.substr(at, end - at));
        if (!number) continue;
        offer(end, nodes[at].score + scores_[static_cast<size_t>(*number)], true);
        single = single || end == next;
      }
      if (!single) offer(next, nodes[at].score + unknown_score_, false);
    }
    std::vector<Span> all;
    for (size_t end = n; end > 0; end = nodes[end].from) {
      Span s{nodes[end].from, end, nodes[end].known};
      if (!s.known && !all.empty() && !all.back().known)
        all.back().begin = s.begin;
      else
        all.push_back(s);
    }
    std::ranges::reverse(all);
    return all;
  }

  std::vector<double> scores_;
  size_t longest_ = 0;
  std::optional<int32_t> unknown_;
  bool byte_fallback_ = false;
  double unknown_score_ = 0;
};

}  // namespace

std::unique_ptr<PieceModel> read_unigram(const json& j, const std::string& place) {
  return std::make_unique<UnigramModel>(j, place);
}

}  // namespace tutti::data
