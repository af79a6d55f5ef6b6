// A small cache of verified files: compiled kernels and tuning results of plugins.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tutti {

/// Entries are files in a folder that only the user may enter; each holds its key, its length and a checksum, and is
/// written beside its place and renamed, so a reader sees whole entries. Every failure is a miss, never an error.
class BlobCache {
 public:
  /// A cache in `folder` (created with mode 0700 at the first put); "" disables it. Once all entries together take more
  /// than `most_bytes`, those that were used least recently go.
  explicit BlobCache(std::filesystem::path folder, uint64_t most_bytes = uint64_t{1} << 30)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}
  /// ${XDG_CACHE_HOME:-~/.cache}/tutti/blobs; TUTTI_CACHE names another folder, or "off" disables it.
  static std::filesystem::path default_folder();

  /// The entry's bytes; empty when it is not there, damaged, or belongs to another key.
  std::vector<std::byte> get(const std::string& key) const;
  /// Stores up to 256 MiB; more, or an unsafe or unwritable folder (one warning per process), stores nothing.
  void put(const std::string& key, const void* from, size_t bytes) const;
  /// The file that holds the key's entry.
  std::filesystem::path file_of(const std::string& key) const;

 private:
  bool safe() const;
  void warn_once(const std::string& why) const;
  void make_room() const;
  std::filesystem::path folder_;
  uint64_t most_bytes_;
  mutable std::atomic<uint64_t> unseen_{UINT64_MAX / 2};  ///< bytes stored since the folder was looked through
};

}  // namespace tutti
