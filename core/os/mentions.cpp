#include <algorithm>
#include <fstream>

#include "core/os/library.h"

namespace tutti::os {

bool mentions(const std::filesystem::path& library, std::string_view text) {
  std::ifstream in(library, std::ios::binary);
  std::string part(1 << 20, '\0'), window;
  while (in.read(part.data(), static_cast<std::streamsize>(part.size())), in.gcount() > 0) {
    window.append(part, 0, static_cast<size_t>(in.gcount()));
    if (window.find(text) != std::string::npos) return true;
    window.erase(0, window.size() - std::min(window.size(), text.size()));
  }
  return false;
}

}  // namespace tutti::os
