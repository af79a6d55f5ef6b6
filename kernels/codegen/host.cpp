#include "kernels/codegen/host.h"

#include <set>

namespace tutti::codegen {
namespace {

constexpr std::string_view entry = "kernel_main";

/// Wraps a text in a namespace, renames its entry and undefines its macros at the end.
std::string apart(std::string_view text, size_t k) {
  std::string code = "namespace kernel_" + std::to_string(k) + " {\n" + std::string(text) + "}\n";
  if (size_t at = code.find("void " + std::string(entry) + "("); at != code.npos)
    code.replace(at + 5, entry.size(), host_entry(k));
  constexpr std::string_view define = "#define ";
  std::set<std::string_view> names;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.starts_with(define)) {
      line.remove_prefix(define.size());
      names.insert(line.substr(0, line.find_first_of(" (")));
    }
    at = end + 1;
  }
  for (std::string_view name : names) code += "#undef " + std::string(name) + "\n";
  return code;
}

}  // namespace

std::string host_entry(size_t k) { return std::string(entry) + "_" + std::to_string(k); }

std::string host_unit(std::span<const std::string_view> texts) {
  // The texts include these too; include guards make that a no-op inside the namespaces.
  std::string code = "#include <cmath>\n#include <cstdint>\n#include <cstring>\n";
  for (size_t k = 0; k < texts.size(); ++k) code += apart(texts[k], k);
  return code;
}

}  // namespace tutti::codegen
