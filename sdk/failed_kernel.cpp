#include "sdk/failed_kernel.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace tutti::sdk {

std::string dump_failed_kernel(const std::string& source, const std::string& log, const std::string& extension) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) return "its source could not be saved: there is no temporary folder";
  std::string name = (folder / ("tutti-kernel-XXXXXX." + extension)).string();
  int descriptor = mkstemps(name.data(), static_cast<int>(extension.size()) + 1);
  FILE* file = descriptor < 0 ? nullptr : fdopen(descriptor, "w");
  if (!file) {
    if (descriptor >= 0) close(descriptor), unlink(name.c_str());
    return fmt::format("its source could not be saved in {}", folder.string());
  }
  std::string text = "/*\n" + log + "\n*/\n";
  std::istringstream in(source);
  int number = 0;
  for (std::string line; std::getline(in, line);) text += fmt::format("{:5}  {}\n", ++number, line);
  bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  written = std::fclose(file) == 0 && written;
  if (written) return "the source with line numbers is in " + name;
  unlink(name.c_str());
  return "its source could not be written to " + name;
}

std::string first_error(const std::string& log) {
  std::istringstream in(log);
  std::string first;
  for (std::string line; std::getline(in, line);) {
    if (line.find("error") != std::string::npos || line.find("ERROR") != std::string::npos) return line;
    if (first.empty()) first = line;
  }
  return first;
}

}  // namespace tutti::sdk
