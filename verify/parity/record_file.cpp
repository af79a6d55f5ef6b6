// Records as safetensors files.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/status.h"
#include "core/base/text.h"
#include "data/files/strict_json.h"
#include "verify/parity/record.h"
#include "verify/parity/tensor_file.h"

namespace tutti::parity {
namespace {

using nlohmann::json;

constexpr FileKind kind = {"tutti parity record 1", "parity record", "`tutti parity --record`"};

uint64_t seed_from(const std::string& text) {
  std::optional<uint64_t> seed = parse_number<uint64_t>(text);
  if (!seed) throw invalid(fmt::format("the seed '{}' is not an integer", text));
  return *seed;
}

Record read(const Checkpoint& c) {
  Record r{.seed = seed_from(metadata(c, "seed")),
           .extent = metadata(c, "extent"),
           .device = metadata(c, "device"),
           .name = metadata(c, "name"),
           .driver = metadata(c, "driver"),
           .version = metadata(c, "version"),
           .cases = {}};
  json cases = parse_strict(metadata(c, "cases"), {}, [](size_t, const std::string& what) {
    throw invalid(fmt::format("the metadata 'cases' {}", what));
  });
  if (!cases.is_object()) throw invalid("the metadata 'cases' is not a JSON object");
  for (const auto& [text, mark] : cases.items()) {
    if (!mark.is_string()) throw invalid(fmt::format("case {} has no fingerprint", text));
    r.cases[text].fingerprint = mark.get<std::string>();
  }
  for (const auto& [name, t] : c.tensors) {
    size_t slash = name.rfind('/');
    auto at = r.cases.find(name.substr(0, slash));
    if (slash == std::string::npos || at == r.cases.end())
      throw invalid(fmt::format("tensor '{}' does not belong to a case", name));
    if (t.type.shape.size() != 1 || t.type.shape[0] > static_cast<int64_t>(most_recorded))
      throw invalid(fmt::format("tensor '{}' is {}, expected a vector of at most {} numbers", name, to_string(t.type),
                                most_recorded));
    at->second.results.emplace(name.substr(slash + 1), tensor_from(t.type, t.bytes.data()));
  }
  for (const auto& [text, recorded] : r.cases)
    if (recorded.results.empty()) throw invalid(fmt::format("case {} has no results", text));
  return r;
}

}  // namespace

void write_record(const std::string& path, const Record& r) {
  Checkpoint c;
  json cases = json::object();
  for (const auto& [text, recorded] : r.cases) {
    cases[text] = recorded.fingerprint;
    for (const auto& [name, t] : recorded.results) put(c, text + "/" + name, t);
  }
  c.metadata = {{"seed", std::to_string(r.seed)},
                {"extent", r.extent},
                {"device", r.device},
                {"name", r.name},
                {"driver", r.driver},
                {"version", r.version}};
  c.metadata["cases"] = cases.dump();
  write_tensor_file(path, kind, std::move(c));
}

Record read_record(const std::string& path) {
  Record r;
  read_tensor_file(path, kind, [&](const Checkpoint& c) { r = read(c); });
  return r;
}

}  // namespace tutti::parity
