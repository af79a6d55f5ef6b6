// An append-only file whose additions are written completely or not at all.
#pragma once
#include <string>
#include <string_view>

#include "core/base/export.h"

namespace tutti {

class TUTTI_API AppendFile {
 public:
  /// Opens it for appending, or creates it. Throws Error(invalid) naming the path.
  explicit AppendFile(std::string path);
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();
  /// On failure returns false and sets errno; a partial write is undone.
  bool add(std::string_view text);
  bool empty() const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_;
};

}  // namespace tutti
