// A file that a run adds to as it goes on: every addition is there whole or not at all.
#pragma once
#include <string>
#include <string_view>

#include "core/base/export.h"

namespace tutti {

class TUTTI_API AppendFile {
 public:
  /// Opens it at its end, or makes it. Throws Error(invalid) naming the path.
  explicit AppendFile(std::string path);
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();
  /// False, and errno, where it could not be added whole; what was added in part is taken back.
  bool add(std::string_view text);
  bool empty() const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_;
};

}  // namespace tutti
