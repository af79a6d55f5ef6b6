// Prints where plugins are searched: run by a test with elevated privileges.
#include <cstdio>
#include <cstdlib>

#include "core/runtime/registry.h"

int main() {
  for (const auto& folder : tutti::plugin_search_path()) std::printf("%s\n", folder.c_str());
  std::fflush(stdout);
  std::_Exit(0);  // the leak sanitizer cannot look into a set-user-id program
}
