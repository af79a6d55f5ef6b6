// The models of tokenizer.json: a piece of text as tokens.
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace tutti::data {

using Vocabulary = std::unordered_map<std::string, int32_t>;

class PieceModel {
 public:
  virtual ~PieceModel() = default;
  /// Appends the tokens of a piece.
  virtual void encode(const std::string& piece, std::vector<int32_t>& tokens) const = 0;
  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  PieceModel() = default;
  PieceModel(const PieceModel&) = default;
  PieceModel(PieceModel&&) = default;
  PieceModel& operator=(const PieceModel&) = default;
  PieceModel& operator=(PieceModel&&) = default;
  /// Reads "vocab", an object of numbers.
  void read_vocabulary(const nlohmann::json& j, const std::string& place);
  /// The number of a token that must be there.
  int32_t number_of(const std::string& token, const std::string& place) const;
  const int32_t* find(const std::string& token) const {
    auto it = vocabulary_.find(token);
    return it == vocabulary_.end() ? nullptr : &it->second;
  }
  /// Appends the tokens "<0x0A>" of all bytes; false if one is missing.
  bool encode_bytes(const std::string& piece, std::vector<int32_t>& tokens) const;
  Vocabulary vocabulary_;
};

/// Reads the object under "model". Throws Error(invalid) naming `place`, key and value.
std::unique_ptr<PieceModel> read_model(const nlohmann::json& j, const std::string& place);
std::unique_ptr<PieceModel> read_bpe(const nlohmann::json& j, const std::string& place);
std::unique_ptr<PieceModel> read_unigram(const nlohmann::json& j, const std::string& place);

}  // namespace tutti::data
