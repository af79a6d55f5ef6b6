// Byte pair encoding (Sennrich et al., 2016) as tokenizer.json describes it: over characters, or over bytes that a
// pre-tokenizer has written as characters.
#include <fmt/format.h>

#include <optional>

#include "core/base/status.h"
#include "core/base/text.h"
#include "data/merges.h"
#include "data/tokenizer.h"
#include "data/tokenizers/models.h"
#include "data/tokenizers/stages.h"

namespace tutti::data {
namespace {

using nlohmann::json;

class BpeModel : public PieceModel {
 public:
  BpeModel(const json& j, const std::string& place) {
    read_vocabulary(j, place);
    prefix_ = text_at(j, "continuing_subword_prefix", place, "");
    suffix_ = text_at(j, "end_of_word_suffix", place, "");
    fuse_ = flag_at(j, "fuse_unk", place, false);
    byte_fallback_ = flag_at(j, "byte_fallback", place, false);
    ignore_merges_ = flag_at(j, "ignore_merges", place, false);
    if (std::string token = text_at(j, "unk_token", place, ""); !token.empty()) unknown_ = number_of(token, place);
    if (const json dropout = j.value("dropout", json()); !dropout.is_null() && dropout != 0)
      fail_at(place, "'dropout' would give another tokenization each time; expected null");
    if (!j.contains("merges") || !j["merges"].is_array()) fail_at(place, "'merges' is missing or not a list");
    for (size_t i = 0; i < j["merges"].size(); ++i) add(j["merges"][i], i, fmt::format("{}: merges[{}]", place, i));
  }

  void encode(const std::string& piece, std::vector<int32_t>& tokens) const override {
    if (const int32_t* whole = ignore_merges_ ? find(piece) : nullptr) return tokens.push_back(*whole);
    std::vector<int32_t> symbols;
    bool unknown = false;  // the last symbol was
    const size_t n = piece.size();
    for (size_t begin = 0, end; begin < n; begin = end) {
      end = begin + 1;
      while (end < n && (static_cast<unsigned char>(piece[end]) & 0xc0) == 0x80) ++end;
      std::string c = piece.substr(begin, end - begin);
      const int32_t* number = find((begin > 0 ? prefix_ : "") + c + (end == n ? suffix_ : ""));
      if (number) {
        symbols.push_back(*number);
      } else if (!(byte_fallback_ && encode_bytes(c, symbols)) && unknown_) {
        if (!(fuse_ && unknown)) symbols.push_back(*unknown_);
        unknown = true;
        continue;
      }
      unknown = false;
    }
    symbols = merged(merges_, std::move(symbols));
    tokens.insert(tokens.end(), symbols.begin(), symbols.end());
  }

 private:
  void add(const json& j, size_t i, const std::string& place) {
    std::vector<std::string> both;
    if (j.is_string()) both = fields(j.get<std::string>(), ' ');
    if (j.is_array() && j.size() == 2 && j[0].is_string() && j[1].is_string()) both = j.get<std::vector<std::string>>();
    if (both.size() != 2) fail_at(place, "expected a pair of tokens");
    const std::string& right = both[1];
    std::string result = both[0] + (right.starts_with(prefix_) ? right.substr(prefix_.size()) : right);
    merges_[merge_key(number_of(both[0], place), number_of(right, place))] = {static_cast<int32_t>(i),
                                                                              number_of(result, place)};
  }

  Merges merges_;
  std::string prefix_, suffix_;
  std::optional<int32_t> unknown_;
  bool fuse_ = false, byte_fallback_ = false, ignore_merges_ = false;
};

}  // namespace

std::unique_ptr<PieceModel> read_bpe(const json& j, const std::string& place) {
  return std::make_unique<BpeModel>(j, place);
}

}  // namespace tutti::data
