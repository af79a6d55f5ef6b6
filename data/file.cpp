#include "data/file.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/status.h"

namespace tutti::data {

std::string read_file(const std::string& path, const std::string& remedy) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    throw invalid(fmt::format("{}: there is no such file", path), remedy);
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  if (in.peek() != std::ifstream::traits_type::eof()) text << in.rdbuf();
  if (in.bad() || !in.is_open() || !text)
    throw invalid(fmt::format("{}: cannot be read", path), "check its permissions");
  return text.str();
}

}  // namespace tutti::data
