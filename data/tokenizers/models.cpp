#include "data/tokenizers/models.h"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "core/base/printable.h"
#include "core/base/status.h"
#include "data/tokenizer.h"
#include "data/tokenizers/stages.h"

namespace tutti::data {
namespace {

using nlohmann::json;

/// The longest known beginnings of words (Schuster and Nakajima, 2012), as in BERT.
class WordPiece : public PieceModel {
 public:
  WordPiece(const json& j, const std::string& place) {
    read_vocabulary(j, place);
    unknown_ = number_of(text_at(j, "unk_token", place, "[UNK]"), place + ": unk_token");
    prefix_ = text_at(j, "continuing_subword_prefix", place, "##");
    const json most = j.value("max_input_chars_per_word", json(100));
    if (!most.is_number_unsigned()) fail_at(place, "'max_input_chars_per_word' is not a count");
    most_ = most;
  }
  void encode(const std::string& piece, std::vector<int32_t>& tokens) const override {
    std::vector<char32_t> characters = code_points(piece, "the text");
    std::vector<int32_t> found;
    bool good = characters.size() <= most_;
    for (size_t begin = 0; good && begin < piece.size();) {
      size_t end = piece.size();
      const int32_t* token = nullptr;
      for (; end > begin; --end) {
        if (end < piece.size() && (static_cast<unsigned char>(piece[end]) & 0xc0) == 0x80) continue;
        std::string part = piece.substr(begin, end - begin);
        token = find(begin > 0 ? prefix_ + part : part);
        if (token) break;
      }
      good = token != nullptr;
      if (good) found.push_back(*token), begin = end;
    }
    if (good)
      tokens.insert(tokens.end(), found.begin(), found.end());
    else
      tokens.push_back(unknown_);
  }

 private:
  int32_t unknown_ = 0;
  std::string prefix_;
  size_t most_ = 100;
};

/// Whole pieces.
class WordLevel : public PieceModel {
 public:
  WordLevel(const json& j, const std::string& place) {
    read_vocabulary(j, place);
    if (const int32_t* n = find(text_at(j, "unk_token", place, "<unk>"))) unknown_ = *n;
  }
  void encode(const std::string& piece, std::vector<int32_t>& tokens) const override {
    const int32_t* n = find(piece);
    if (!n && !unknown_)
      throw invalid(fmt::format("the tokenizer has no token '{}', and none for unknown words", printable(piece, 40)),
                    "use another text or tokenizer");
    tokens.push_back(n ? *n : *unknown_);
  }

 private:
  std::optional<int32_t> unknown_;
};

}  // namespace

void PieceModel::read_vocabulary(const json& j, const std::string& place) {
  if (!j.contains("vocab") || !j["vocab"].is_object() || j["vocab"].empty())
    fail_at(place, "'vocab' is missing, empty or not an object");
  const json& all = j["vocab"];
  vocabulary_.reserve(all.size());
  for (const auto& [token, number] : all.items()) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() >= std::numeric_limits<int32_t>::max())
      fail_at(place,
              fmt::format("the number of token '{}' is not an integer from 0 to 2^31 - 2", printable(token, 40)));
    vocabulary_.emplace(token, number.get<int32_t>());
  }
}

int32_t PieceModel::number_of(const std::string& token, const std::string& place) const {
  const int32_t* n = find(token);
  if (!n) fail_at(place, fmt::format("the vocabulary has no token '{}'", printable(token, 40)));
  return *n;
}

bool PieceModel::encode_bytes(const std::string& piece, std::vector<int32_t>& tokens) const {
  std::vector<int32_t> all;
  for (char c : piece) {
    const int32_t* n = find(fmt::format("<0x{:02X}>", static_cast<unsigned char>(c)));
    if (!n) return false;
    all.push_back(*n);
  }
  tokens.insert(tokens.end(), all.begin(), all.end());
  return true;
}

std::unique_ptr<PieceModel> read_model(const json& j, const std::string& place) {
  if (!j.is_object()) fail_at(place, "expected an object");
  // Files of the first versions have no type: only BPE has merges.
  const std::string type = text_at(j, "type", place, j.contains("merges") ? "BPE" : "");
  const std::string here = place + ": " + printable(type, 40);
  if (type == "BPE") return read_bpe(j, here);
  if (type == "Unigram") return read_unigram(j, here);
  if (type == "WordPiece") return std::make_unique<WordPiece>(j, here);
  if (type == "WordLevel") return std::make_unique<WordLevel>(j, here);
  fail_at(here, "models of this type are not supported");
}

}  // namespace tutti::data
