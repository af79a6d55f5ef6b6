// The stages of a tokenizer.json before and after its model.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tutti::data {

/// A piece of the text. `first`: it begins where the text does.
struct Piece {
  std::string text;
  bool first = false;
};
using Pieces = std::vector<Piece>;

using Normalizer = std::function<std::string(std::string)>;
using Splitter = std::function<void(Pieces&)>;
/// Changes the texts of tokens, which are then joined.
using TokenDecoder = std::function<void(std::vector<std::string>&)>;

/// Reads the object under "normalizer", "pre_tokenizer" or "decoder"; null gives a stage that changes nothing. Throws
/// Error(invalid) naming `place` and the type or key that is not supported.
Normalizer read_normalizer(const nlohmann::json& j, const std::string& place);
Splitter read_splitter(const nlohmann::json& j, const std::string& place);
TokenDecoder read_decoder(const nlohmann::json& j, const std::string& place);

/// A member with checks: throws Error(invalid) naming `place`, key and expectation.
std::string text_at(const nlohmann::json& j, const std::string& key, const std::string& place);
std::string text_at(const nlohmann::json& j, const std::string& key, const std::string& place,
                    const std::string& otherwise);
bool flag_at(const nlohmann::json& j, const std::string& key, const std::string& place, bool otherwise);
[[noreturn]] void fail_at(const std::string& place, const std::string& what);
/// The object's "type". Throws Error(invalid) unless it is an object with one.
std::string type_of(const nlohmann::json& j, const std::string& place);

}  // namespace tutti::data
