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

namespace {

/// Levenshtein distance, case-insensitive.
size_t distance(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t changed = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
    }
  }
  return row[b.size()];
}

}  // namespace

const std::string* nearest_of(std::string_view wrong, const std::vector<std::string>& names) {
  constexpr size_t longest = 64;  // texts from files may be long
  size_t best = wrong.size() > longest ? 0 : 1 + wrong.size() / 4;
  const std::string* nearest = nullptr;
  for (const std::string& name : names)
    if (size_t d = wrong.size() > longest ? 1 : distance(wrong, name); d <= best && (!nearest || d < best)) {
      best = d;
      nearest = &name;
    }
  return nearest;
}

std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& names) {
  const std::string* nearest = nearest_of(wrong, names);
  return nearest ? fmt::format("did you mean '{}'?", *nearest) : "use " + alternatives(names);
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
      case '\t': out += "&#9;"; break;  // as references, because attribute normalization would replace them by spaces
      case '\n': out += "&#10;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return out;
}

}  // namespace tutti
