#include "core/base/attrs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/status.h"

namespace tutti {
namespace {
constexpr const char* kinds[] = {"integers", "reals", "a string"};

template <class T>
const T& as(const std::string& name, const Attr& attr, size_t kind) {
  if (auto* v = std::get_if<T>(&attr)) return *v;
  throw invalid(fmt::format("attribute '{}' is {}, not {}", name, kinds[attr.index()], kinds[kind]));
}

template <class T>
T single(const std::string& name, const std::vector<T>& list) {
  if (list.size() != 1) throw invalid(fmt::format("attribute '{}' has {} elements, expected 1", name, list.size()));
  return list[0];
}
}  // namespace

const Attr& Attrs::at(const std::string& name) const {
  auto it = map_.find(name);
  if (it == map_.end()) throw invalid(fmt::format("no attribute '{}'", name));
  return it->second;
}

const Ints& Attrs::ints(const std::string& name) const { return as<Ints>(name, at(name), 0); }
const Reals& Attrs::reals(const std::string& name) const { return as<Reals>(name, at(name), 1); }
const std::string& Attrs::text(const std::string& name) const { return as<std::string>(name, at(name), 2); }
int64_t Attrs::i(const std::string& name) const { return single(name, ints(name)); }
double Attrs::f(const std::string& name) const { return single(name, reals(name)); }

Attrs Attrs::over(const Attrs& defaults) const {
  Attrs out = defaults;
  for (const auto& [name, value] : map_) {
    auto it = defaults.map_.find(name);
    if (it == defaults.map_.end()) throw invalid(fmt::format("unknown attribute '{}'", name));
    if (it->second.index() != value.index())
      throw invalid(
          fmt::format("attribute '{}' must be {}, not {}", name, kinds[it->second.index()], kinds[value.index()]));
    out.map_[name] = value;
  }
  return out;
}

std::string Attrs::to_string() const {
  if (map_.empty()) return "";
  std::vector<std::string> parts;
  for (const auto& [name, value] : map_) {
    std::string text;
    if (auto* ints = std::get_if<Ints>(&value)) {
      text = ints->size() == 1 ? fmt::format("{}", ints->front()) : fmt::format("[{}]", fmt::join(*ints, ", "));
    } else if (auto* reals = std::get_if<Reals>(&value)) {
      text = reals->size() == 1 ? fmt::format("{}", reals->front()) : fmt::format("[{}]", fmt::join(*reals, ", "));
    } else {
      text = fmt::format("\"{}\"", std::get<std::string>(value));
    }
    parts.push_back(name + "=" + text);
  }
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

}  // namespace tutti
