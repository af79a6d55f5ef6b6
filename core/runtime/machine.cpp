#include "core/runtime/machine.h"

#include <fstream>

namespace tutti {

std::string value_in(const char* file, const std::string& key, char separator) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    size_t at = line.find(separator);
    if (at == std::string::npos || !line.starts_with(key)) continue;
    std::string value = line.substr(at + 1);
    value.erase(0, value.find_first_not_of(" \t\""));
    value.erase(value.find_last_not_of(" \t\"") + 1);
    return value;
  }
  return "";
}

std::string cpu_model() { return value_in("/proc/cpuinfo", "model name", ':'); }

std::string system_name() { return value_in("/etc/os-release", "PRETTY_NAME", '='); }

}  // namespace tutti
