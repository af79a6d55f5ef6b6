// ZIP archives as NumPy writes them (PKWARE's APPNOTE 6.3: entries stored or deflated, zip64).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "data/files/ranged_file.h"

namespace tutti {

struct ZipEntry {
  std::string name;
  bool deflated = false;
  uint32_t crc = 0;
  uint64_t packed = 0, bytes = 0;  ///< compressed and uncompressed size
  uint64_t at = 0;                 ///< byte offset of the compressed data
};

/// An archive whose directory has been read and checked: all entries lie in the file, do not overlap, and claim no more
/// bytes than their compressed data can expand to.
class TUTTI_API ZipFile {
 public:
  /// Throws Error(invalid) naming file, place and expectation; also for encrypted entries and unsupported compression
  /// methods.
  explicit ZipFile(const std::string& path);
  const std::string& path() const { return file_.path(); }
  uint64_t file_bytes() const { return file_.size(); }
  const std::vector<ZipEntry>& entries() const { return entries_; }

 private:
  friend class ZipReader;
  void read_directory(uint64_t at, uint64_t bytes, uint64_t count);
  void check_places(uint64_t directory);
  RangedFile file_;
  std::vector<ZipEntry> entries_;
};

/// Reads the bytes of one entry sequentially.
class TUTTI_API ZipReader {
 public:
  ZipReader(const ZipFile& file, const ZipEntry& entry);
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;
  ~ZipReader();
  /// Throws Error(invalid) if the entry ends too early, or if its checksum does not match once the last byte is read.
  void read(void* to, uint64_t bytes);

 private:
  struct Inflater;
  [[noreturn]] void fail(const std::string& what) const;
  const ZipFile& file_;
  const ZipEntry& entry_;
  uint64_t packed_done_ = 0, done_ = 0;
  uint32_t crc_ = 0;
  std::unique_ptr<Inflater> inflater_;
};

}  // namespace tutti
