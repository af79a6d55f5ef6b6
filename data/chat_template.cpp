#include "data/chat_template.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/status.h"
#include "data/file.h"
#include "data/files/strict_json.h"

namespace tutti::data {

std::string chat_template_of_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  const char* const again = "download the file again";
  std::error_code error;
  const std::string own = (fs::path(folder) / "chat_template.jinja").string();
  if (fs::is_regular_file(own, error)) return read_file(own, again);
  const std::string path = (fs::path(folder) / "tokenizer_config.json").string();
  if (!fs::is_regular_file(path, error)) return "";
  const nlohmann::json all =
      parse_strict(read_file(path, again), {.depth = 32}, [&](size_t at, const std::string& what) {
        throw invalid(fmt::format("{}, byte {}: {}", path, at, what), again);
      });
  if (!all.is_object() || !all.contains("chat_template")) return "";
  const nlohmann::json& chat = all["chat_template"];
  if (chat.is_string()) return chat.get<std::string>();
  if (chat.is_array())
    for (const nlohmann::json& one : chat)
      if (one.is_object() && one.value("name", nlohmann::json()) == "default" && one.contains("template") &&
          one["template"].is_string())
        return one["template"].get<std::string>();
  return "";
}

}  // namespace tutti::data
