#include "tests/verify/conformance/faults.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace tutti::mock {

Faults::Faults() {
  const char* text = std::getenv("TUTTI_MOCK");
  std::istringstream in(text ? text : "");
  for (std::string entry; std::getline(in, entry, ',');) {
    size_t colon = std::min(entry.find(':'), entry.size());
    std::string name = entry.substr(0, colon);
    bool known = std::any_of(std::begin(all_faults), std::end(all_faults), [&](auto& f) { return f.name == name; });
    if (!known && unknown_.empty()) unknown_ = name;
    on_.emplace_back(name, entry.substr(std::min(colon + 1, entry.size())));
  }
}

const Faults& Faults::get() {
  static const Faults faults;
  return faults;
}

bool Faults::on(const std::string& name) const {
  return std::any_of(on_.begin(), on_.end(), [&](auto& f) { return f.first == name; });
}

std::string Faults::argument(const std::string& name) const {
  for (const auto& [fault, argument] : on_)
    if (fault == name) return argument;
  return "";
}

uint64_t Faults::number(const std::string& name) const { return std::strtoull(argument(name).c_str(), nullptr, 10); }

}  // namespace tutti::mock
