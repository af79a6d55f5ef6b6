#include "cli/output_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "cli/print.h"
#include "core/base/status.h"
#include "core/os/file.h"
#include "core/os/terminal.h"
#include "data/files/whole_file.h"

namespace tutti::cli {

CLI::Option* add_json_target(CLI::App& sub, std::string& target) {
  return sub.add_option("--json", target, "Write one JSON document to this file, or to stdout")
      ->expected(0, 1)
      ->default_str("-");
}

void check_target(const char* option, const std::string& target) {
  namespace fs = std::filesystem;
  if (target.empty() || target == "-") return;
  auto refuse = [&](const std::string& why, const std::string& remedy) {
    throw invalid(fmt::format("{} {}: cannot be written: {}", option, target, why), remedy);
  };
  std::error_code ec;
  fs::path folder = fs::path(target).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ec))
    refuse(fmt::format("the folder {} does not exist", folder.string()), "create it first");
  if (!os::may_write(folder.empty() ? "." : folder.string()))
    refuse(fmt::format("its folder cannot be written: {}", std::strerror(errno)), "choose a file in a writable folder");
  if (fs::is_directory(target, ec)) refuse("it is a folder", "name a file");
  if (fs::exists(target, ec) && !fs::is_regular_file(target, ec)) refuse("it is not a regular file", "name a file");
  try {
    FileLock probe(target);
  } catch (const Error& e) {
    refuse(e.what(), e.remedy);
  }
}

std::string shell_word(const std::string& word) {
  if (!word.empty() &&
      word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+=@%") ==
          std::string::npos)
    return word;
  std::string text = "'";
  for (char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

std::string file_word(const std::string& path) { return shell_word(path.starts_with('-') ? "./" + path : path); }

void check_targets(std::span<const Target> targets) {
  namespace fs = std::filesystem;
  std::map<std::string, const char*> takers;
  for (auto [option, file] : targets) {
    check_target(option, *file);
    if (file->empty()) continue;
    std::error_code ec;
    auto [taker, first] =
        takers.emplace(*file == "-" ? "-" : fs::weakly_canonical(fs::absolute(*file, ec), ec).string(), option);
    if (!first)
      throw invalid(fmt::format("{} and {} both write to {}", taker->second, option, *file == "-" ? "stdout" : *file),
                    "give a different file for each");
  }
}

void write_target(const std::string& target, std::string_view text) {
  if (target == "-")
    os::write_text(os::Stream::out, text);
  else if (!target.empty())
    write_whole_file(target, text);
}

bool try_write_target(const Target& target, std::string_view text) {
  try {
    write_target(*target.second, text);
    return true;
  } catch (const Error& e) {
    print_err("tutti: {} {}\n", target.first, e.what());
    if (!e.remedy.empty()) print_err("  try: {}\n", e.remedy);
    return false;
  }
}

}  // namespace tutti::cli
