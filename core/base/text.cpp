#include "core/base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace tutti {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find(separator, at), text.size());
    if (end > at) parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::vector<std::string> fields(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find(separator, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::string alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  return text;
}

std::string first_of(const std::vector<std::string>& all, std::string_view separator) {
  constexpr size_t most = 20;
  std::string text;
  for (size_t i = 0; i < std::min(all.size(), most); ++i) text += fmt::format("{}{}", i == 0 ? "" : separator, all[i]);
  if (all.size() > most) text += fmt::format("{}and {} more", separator, all.size() - most);
  return text;
}

std::string bytes_text(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  const char* unit = "KiB";
  double x = static_cast<double>(bytes) / 1024;
  for (const char* larger : {"MiB", "GiB"})
    if (x >= 1024) {
      x /= 1024;
      unit = larger;
    }
  return fmt::format("{:.1f} {}", x, unit);
}

std::string escape_xml(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      case '\t': out += "&#9;"; break;  // as references, because attributes lose them otherwise
      case '\n': out += "&#10;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return out;
}

}  // namespace tutti
