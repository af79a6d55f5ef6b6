// Locks that allow one writer per file.
#pragma once
#include <memory>
#include <string>

namespace tutti {

/// The file that a path refers to: links are followed, even to a file that does not exist yet. Throws Error(invalid)
/// for a path that cannot be replaced by a file: a folder, a pipe, a cycle of links, a name that is too long.
std::string target_of(const std::string& path);

/// The path of a helper file in the target's folder: the target's name plus the suffix, shortened if the file system
/// would reject it as too long.
std::string beside(const std::string& target, const std::string& suffix);

/// The remedy for an errno of creating or writing that file.
std::string remedy_of_writing(int why, const std::string& path);

/// While a FileLock exists, no other process that uses FileLock can write the file; threads of one process share it.
/// The lock is an empty file beside the target, NAME.lock, which is removed with the lock. File systems without locks
/// are tolerated.
class FileLock {
 public:
  /// Removes partial files that killed processes left. Throws Error(invalid) naming the file, if another process holds
  /// the lock or nothing can be created in its folder.
  explicit FileLock(const std::string& path);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();
  /// The target file: see target_of.
  const std::string& target() const;

 private:
  struct Held;
  std::shared_ptr<Held> held_;
};

}  // namespace tutti
