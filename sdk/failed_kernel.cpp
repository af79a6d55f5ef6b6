#include "sdk/failed_kernel.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "core/os/file.h"
#include "core/os/folders.h"

namespace tutti::sdk {

std::string dump_failed_kernel(const std::string& source, const std::string& log, const std::string& extension) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) return "its source could not be saved: there is no temporary folder";
  std::string name;
  const int descriptor = os::make_file_in(folder, "tutti-kernel-", "." + extension, name);
  FILE* file = descriptor < 0 ? nullptr : os::stream_of(descriptor, "w");
  if (!file) {
    if (descriptor >= 0) os::close_file(descriptor), os::remove_file(name);
    return fmt::format("its source could not be saved in {}", folder.string());
  }
  std::string text = "/*\n" + log + "\n*/\n";
  std::istringstream in(source);
  int number = 0;
  for (std::string line; std::getline(in, line);) text += fmt::format("{:5}  {}\n", ++number, line);
  bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  written = std::fclose(file) == 0 && written;
  if (written) return "the source with line numbers is in " + name;
  os::remove_file(name);
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
