#include "core/os/environment.h"

namespace tutti::os {

std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> all = environment();
  std::erase_if(all, [&](const std::string& entry) { return changes.contains(entry.substr(0, entry.find('='))); });
  for (const auto& [name, value] : changes) all.push_back(std::string(name).append("=").append(value));
  return all;
}

}  // namespace tutti::os
