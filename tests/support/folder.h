// A fresh folder for a test's files.
#pragma once
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "core/os/folders.h"

namespace tutti::test {

/// Made with mode 0700; removed with everything in it. The folder above is its own too: what others do in the temporary
/// folder changes neither.
class Folder {
 public:
  Folder() {
    const std::filesystem::path above = os::make_folder_in(std::filesystem::temp_directory_path(), "tutti-test-");
    if (above.empty()) throw std::runtime_error("cannot create a temporary folder");
    path_ = std::filesystem::canonical(above) / "files";
    std::filesystem::create_directory(path_);
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_.parent_path(), ignored);
  }
  Folder(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }
  /// Writes a file of that name, and returns its path.
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return *this / name;
  }
  /// How many entries it has.
  size_t count() const {
    std::filesystem::directory_iterator begin(path_);
    return static_cast<size_t>(std::distance(begin, std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

}  // namespace tutti::test
