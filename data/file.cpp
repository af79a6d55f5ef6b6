#include "data/file.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/status.h"

namespace tutti::data {

uint64_t expect_file(const std::string& path, const std::string& remedy) {
  std::error_code error;
  std::filesystem::file_status there = std::filesystem::status(path, error);
  if (!std::filesystem::is_regular_file(there))
    throw invalid(fmt::format("{}: {}", path,
                              std::filesystem::is_directory(there) ? "a folder, expected a file"
                              : std::filesystem::exists(there)     ? "not a regular file"
                                                                   : "there is no such file"),
                  remedy);
  return std::filesystem::file_size(path, error);
}

std::string read_file(const std::string& path, const std::string& remedy) {
  expect_file(path, remedy);
  std::ifstream in(std::filesystem::path(path), std::ios::binary);
  std::stringstream text;
  if (in.peek() != std::ifstream::traits_type::eof()) text << in.rdbuf();
  if (in.bad() || !in.is_open() || !text)
    throw invalid(fmt::format("{}: cannot be read", path), "check its permissions");
  return text.str();
}

}  // namespace tutti::data
