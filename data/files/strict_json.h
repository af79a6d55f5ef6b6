// Parses JSON from untrusted files.
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace tutti {

/// Limits on a document beyond the grammar.
struct JsonLimits {
  size_t depth = 8;        ///< nesting of objects and lists
  size_t list = SIZE_MAX;  ///< elements of one list
};

/// Parses in time linear in the text. `fail(byte, what)` must throw; it is called for invalid JSON, an exceeded limit,
/// or a duplicate key (of which the underlying parser would silently keep the last).
nlohmann::json parse_strict(const std::string& text, const JsonLimits& limits,
                            const std::function<void(size_t, const std::string&)>& fail);

/// The JSON object in a file. Throws Error(invalid) naming file and byte, with that remedy.
nlohmann::json read_json_object(const std::string& path, const std::string& remedy);

}  // namespace tutti
