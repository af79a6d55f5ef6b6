#include "core/os/environment.h"

#include <unistd.h>
#include <cstdlib>

namespace tutti::os {

void set_variable(const std::string& name, const std::string& value, bool replace) {
  setenv(name.c_str(), value.c_str(), replace);
}

void unset_variable(const std::string& name) { unsetenv(name.c_str()); }

std::vector<std::string> environment() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) all.emplace_back(*entry);
  return all;
}

}  // namespace tutti::os
