// Removes names of people, hosts and folders from a report.

#include <cctype>
#include <string_view>

#include "cli/device_report/report.h"
#include "cli/doctor/report.h"
#include "core/os/this_process.h"

namespace tutti::cli {
namespace {

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

/// Replaces whole words.
std::string replaced(std::string text, const std::string& word, const std::string& by) {
  if (word.empty()) return text;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos;) {
    const size_t end = at + word.size();
    const bool whole = (at == 0 || !in_word(text[at - 1])) && (end == text.size() || !in_word(text[end]));
    if (whole) text.replace(at, word.size(), by);
    at += whole ? by.size() : word.size();
  }
  return text;
}

bool is_slash(char c) { return c == '/' || c == '\\'; }

/// The length of what an absolute path begins with: "/", "~", "C:\", "\\"; 0 if none begins here.
size_t root_length(std::string_view text) {
  if (text.empty()) return 0;
  if (text[0] == '/' || text[0] == '~') return 1;
  if (text.starts_with("\\\\")) return 2;
  return text.size() > 2 && std::isalpha(static_cast<unsigned char>(text[0])) && text[1] == ':' && is_slash(text[2])
             ? 3
             : 0;
}

/// "cannot open /opt/drivers/libx.so: no such file" -> "cannot open libx.so: no such file".
std::string without_folders(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t root = root_length(std::string_view(text).substr(at));
    if (root == 0 || (at > 0 && (in_word(text[at - 1]) || text[at - 1] == '.'))) {
      out += text[at++];
      continue;
    }
    const size_t end = std::min(text.find_first_of(" \t\n\"':,;()<>", at + root), text.size());
    const std::string path = text.substr(at, end - at);
    const size_t last = path.find_last_of("/\\");
    out += path.substr(last == std::string::npos ? 0 : last + 1);
    at = end;
  }
  return out;
}

std::string anonymous_text(const std::string& text) {
  static const std::string host = os::host_name(), user = os::user_name();
  std::string out = without_folders(without_home(text));
  if (host != "localhost") out = replaced(out, host, "HOST");
  return user == "root" ? out : replaced(out, user, "USER");
}

}  // namespace

nlohmann::ordered_json anonymous(const nlohmann::ordered_json& document) {
  if (document.is_string()) return anonymous_text(document.get<std::string>());
  if (!document.is_structured()) return document;
  nlohmann::ordered_json out = document;
  for (auto& value : out) value = anonymous(value);
  return out;
}

}  // namespace tutti::cli
