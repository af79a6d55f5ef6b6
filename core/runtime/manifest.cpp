#include "core/runtime/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/status.h"

namespace tutti {
namespace {

using nlohmann::json;
constexpr std::streamsize most_bytes = 64 << 10;

std::string read_bounded(const std::filesystem::path& path) {
  std::error_code ec;
  if (std::filesystem::exists(path, ec) && !std::filesystem::is_regular_file(path, ec))
    throw invalid("is not a regular file");  // opening a pipe would wait for ever
  std::ifstream in(path, std::ios::binary);
  if (!in) throw invalid("cannot be opened");
  std::string text(most_bytes + 1, '\0');
  in.read(text.data(), most_bytes + 1);
  if (in.bad()) throw invalid("cannot be read");
  if (in.gcount() > most_bytes) throw invalid("is larger than 64 KiB");
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

const json& key(const json& object, const char* name) {
  auto it = object.find(name);
  if (it == object.end()) throw invalid(fmt::format("key \"{}\" is missing", name));
  return *it;
}

std::string text(const json& object, const char* name, size_t most) {
  const json& v = key(object, name);
  if (!v.is_string()) throw invalid(fmt::format("key \"{}\" must be a string, not {}", name, v.type_name()));
  auto s = v.get<std::string>();
  if (s.empty() || s.size() > most || s.find('\0') != std::string::npos)
    throw invalid(fmt::format("key \"{}\" must have 1 to {} characters", name, most));
  return s;
}

/// A value for messages; for lists and objects only the type, because they may be deeply nested.
std::string shown(const json& v) { return v.is_structured() ? v.type_name() : v.dump(-1, ' ', true).substr(0, 100); }

int64_t integer(const json& v, const char* name, int64_t low, int64_t high) {
  bool fits = v.is_number_integer();
  if (fits && v.is_number_unsigned()) fits = v.get<uint64_t>() <= static_cast<uint64_t>(high);
  if (!fits || v.get<int64_t>() < low || v.get<int64_t>() > high)
    throw invalid(fmt::format("key \"{}\" must be an integer from {} to {}, not {}", name, low, high, shown(v)));
  return v.get<int64_t>();
}

Manifest parse(const std::filesystem::path& path) {
  json object;
  const std::string content = read_bounded(path);
  // The parser would end at a zero byte and ignore the rest.
  if (size_t zero = content.find('\0'); zero != std::string::npos)
    throw invalid(fmt::format("is not JSON: byte {}: a zero byte", zero + 1));
  try {
    object = json::parse(content);
  } catch (const json::parse_error& e) {
    throw invalid(fmt::format("is not JSON: byte {}: {}", e.byte, e.what()));
  } catch (const json::out_of_range&) {
    throw invalid("is not JSON: a number is too large");
  }
  if (!object.is_object()) throw invalid(fmt::format("must be a JSON object, not {}", object.type_name()));
  Manifest m;
  m.path = path;
  if (auto v = integer(key(object, "tutti_manifest"), "tutti_manifest", 1, 1 << 20); v != 1)
    throw invalid(fmt::format("has manifest version {}; this engine reads version 1", v));
  m.name = text(object, "name", 32);
  if (m.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos || m.name == "auto" ||
      m.name == "all")
    throw invalid(
        fmt::format("key \"name\" must consist of a-z, 0-9 and '_' and must not be auto or all; it is \"{}\"", m.name));
  m.version = text(object, "version", 64);
  if (object.contains("description")) m.description = text(object, "description", 1000);
  m.kind = text(object, "kind", 32);
  constexpr const char* kinds[] = {"cpu", "gpu", "software", "other"};
  if (std::find(std::begin(kinds), std::end(kinds), m.kind) == std::end(kinds))
    throw invalid(fmt::format("key \"kind\" must be cpu, gpu, software or other, not \"{}\"", m.kind));
  m.priority = static_cast<int>(integer(key(object, "priority"), "priority", -1000, 1000));
  const json& abi = key(object, "abi");
  if (!abi.is_array() || abi.size() != 2)
    throw invalid(fmt::format("key \"abi\" must be [lowest, highest], not {}", shown(abi)));
  m.abi_min = static_cast<uint32_t>(integer(abi[0], "abi", 1, 1 << 20));
  m.abi_max = static_cast<uint32_t>(integer(abi[1], "abi", m.abi_min, 1 << 20));
  std::filesystem::path library = text(object, "library", 1024);
  if (library.is_absolute() || std::find(library.begin(), library.end(), "..") != library.end())
    throw invalid(
        fmt::format("key \"library\" must be a path below the manifest's folder, not \"{}\"", library.string()));
  m.library = (path.parent_path() / library).lexically_normal();
  return m;
}

}  // namespace

Manifest read_manifest(const std::filesystem::path& path) {
  try {
    return parse(std::filesystem::absolute(path).lexically_normal());
  } catch (const std::exception& e) {
    throw invalid(fmt::format("manifest {}: {}", path.string(), e.what()),
                  "see docs/PLUGINS.md for the manifest's keys");
  }
}

}  // namespace tutti
