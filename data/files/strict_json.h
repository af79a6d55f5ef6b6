// JSON from files that nobody vouches for.
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace tutti {

/// What a text may hold beyond the grammar.
struct JsonLimits {
  size_t depth = 8;        ///< objects and lists inside each other
  size_t list = SIZE_MAX;  ///< elements of one list
};

/// Parses in time linear in the text. `fail(byte, what)` must throw; it is called where the text is no JSON, a limit is
/// passed, or an object names something twice (of which the parser would keep the last without a word).
nlohmann::json parse_strict(const std::string& text, const JsonLimits& limits,
                            const std::function<void(size_t, const std::string&)>& fail);

/// The JSON object that a file holds. Throws Error(invalid) naming file and byte, with that remedy.
nlohmann::json read_json_object(const std::string& path, const std::string& remedy);

}  // namespace tutti
