#include "sdk/cache_key.h"

#include <fmt/format.h>

#include "core/base/hash.h"

namespace tutti::sdk {

std::string cache_key(const std::string& prefix, const std::string& text) {
  return fmt::format("{}/{:016x}{:016x}", prefix, fnv1a(text.data(), text.size()),
                     fnv1a(text.data(), text.size(), other_fnv_start));
}

std::string kernel_text(const std::string& identity, const codegen::KernelSource& s) {
  return fmt::format("{}\n{} {} {}x{}x{}\n{}", identity, s.entry,
                     s.denormals ? "exact numerics"
                     : s.exact   ? "exact"
                                 : "fast",
                     s.local[0], s.local[1], s.local[2], s.text);
}

}  // namespace tutti::sdk
