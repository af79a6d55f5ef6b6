// A small cache of checksummed files: compiled kernels and tuning results of plugins.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tutti {

/// Each entry is a file with its key, length and checksum, in a folder that only the user can access. Files are written
/// under a temporary name and renamed, so readers never see partial entries. Every failure is a cache miss, never an
/// error.
class BlobCache {
 public:
  /// A cache in `folder` (created with mode 0700 at the first put); "" disables it. If all entries together exceed
  /// `most_bytes`, the least recently used ones are deleted.
  explicit BlobCache(std::filesystem::path folder, uint64_t most_bytes = uint64_t{1} << 30)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}
  /// ${XDG_CACHE_HOME:-~/.cache}/tutti/blobs; TUTTI_CACHE replaces the folder, or disables the cache ("off").
  static std::filesystem::path default_folder();

  /// The entry's bytes; empty if it is missing, damaged, or belongs to another key.
  std::vector<std::byte> get(const std::string& key) const;
  /// Stores at most 256 MiB; does nothing for more, or if the folder is unsafe or not writable (one warning per
  /// process).
  void put(const std::string& key, const void* from, size_t bytes) const;
  /// The file that holds the key's entry.
  std::filesystem::path file_of(const std::string& key) const;

 private:
  bool safe() const;
  void warn_once(const std::string& why) const;
  void make_room() const;
  std::filesystem::path folder_;
  uint64_t most_bytes_;
  mutable std::atomic<uint64_t> unseen_{UINT64_MAX / 2};  ///< bytes stored since the folder was last scanned
};

}  // namespace tutti
