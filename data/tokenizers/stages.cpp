#include "data/tokenizers/stages.h"

#include <fmt/format.h>

#include "core/base/printable.h"
#include "core/base/status.h"
#include "data/tokenizer.h"

namespace tutti::data {

using nlohmann::json;

void fail_at(const std::string& place, const std::string& what) {
  throw invalid(fmt::format("{}: {}", place, what), "use another tokenizer");
}

std::string text_at(const json& j, const std::string& key, const std::string& place) {
  if (!j.contains(key) || !j[key].is_string()) fail_at(place, fmt::format("'{}' is missing or not a string", key));
  std::string text = j[key];
  code_points(text, place + ": " + key);
  return text;
}

std::string text_at(const json& j, const std::string& key, const std::string& place, const std::string& otherwise) {
  return !j.contains(key) || j[key].is_null() ? otherwise : text_at(j, key, place);
}

bool flag_at(const json& j, const std::string& key, const std::string& place, bool otherwise) {
  if (!j.contains(key) || j[key].is_null()) return otherwise;
  if (!j[key].is_boolean()) fail_at(place, fmt::format("'{}' is not true or false", key));
  return j[key];
}

std::string type_of(const json& j, const std::string& place) {
  if (!j.is_object()) fail_at(place, "expected an object");
  return text_at(j, "type", place);
}

}  // namespace tutti::data
