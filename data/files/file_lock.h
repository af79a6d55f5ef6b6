// One writer per file.
#pragma once
#include <memory>
#include <string>

namespace tutti {

/// The file that a path leads to: links are followed, also to a file that is not there yet. Throws Error(invalid) for
/// what no file can take the place of: a folder, a pipe, a circle of links, a name that is too long.
std::string target_of(const std::string& path);

/// A path in the target's folder for a helper of ours: the target's name and the suffix, shortened where the file
/// system would find it too long.
std::string beside(const std::string& target, const std::string& suffix);

/// What to do about an error number of creating or writing that file.
std::string remedy_of_writing(int why, const std::string& path);

/// While one lives, no other process that asks for one writes the file; within a process it is shared. The mark is an
/// empty file beside the target, NAME.lock, which goes with the lock. File systems that have no locks are lived with.
class FileLock {
 public:
  /// Removes what killed processes left half written. Throws Error(invalid) naming the file, where another process has
  /// it or nothing can be created in its folder.
  explicit FileLock(const std::string& path);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();
  /// The file itself: see target_of.
  const std::string& target() const;

 private:
  struct Held;
  std::shared_ptr<Held> held_;
};

}  // namespace tutti
