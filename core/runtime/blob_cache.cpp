#include "core/runtime/blob_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>

#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/os/file.h"
#include "core/os/folders.h"
#include "core/os/this_process.h"
#include "core/os/trust.h"

namespace tutti {
namespace {

constexpr size_t largest_entry = size_t{256} << 20;
constexpr char magic[8] = {'T', 'U', 'T', 'T', 'I', 'B', 'L', '1'};

struct Header {
  char magic[8];
  uint64_t key_bytes, bytes, checksum;
};

/// Whether it is the name of an entry (16 digits, ".blob") or of its temporary file: the folder may contain other
/// files.
bool is_ours(const std::string& name) {
  size_t digits = name.find_first_not_of("0123456789abcdef");
  if (digits != 16 || name.compare(digits, 5, ".blob") != 0) return false;
  return name.size() == digits + 5 || (name[digits + 5] == '.' && name.ends_with(".new"));
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File open_file(const std::filesystem::path& path, unsigned how, const char* mode) {
  int file = os::open_file(path.string(), how | os::not_a_link | os::at_once, 0600);  // a pipe could block forever
  if (auto facts = file < 0 ? std::nullopt : os::facts_of(file); file >= 0 && !(facts && facts->regular)) {
    os::close_file(file);
    file = -1;
  }
  return {file < 0 ? nullptr : os::stream_of(file, mode), std::fclose};
}

}  // namespace

std::filesystem::path BlobCache::default_folder() {
  std::filesystem::path named = os::trusted_variable("TUTTI_CACHE");
  if (named == "off") return {};
  if (!named.empty()) {
    if (named.is_absolute()) return named;
    logging::warning("cache", "TUTTI_CACHE={}: expected an absolute path or \"off\"; caching is off", named.string());
    return {};
  }
  std::filesystem::path base = os::cache_folder();
  return base.empty() ? base : base / "tutti" / "blobs";
}

bool BlobCache::safe() const { return !folder_.empty() && os::is_private_folder(folder_.string(), false); }

void BlobCache::warn_once(const std::string& why) const {
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    logging::warning("cache", "the cache folder {} cannot be used: {}; every process will compile its kernels again",
                     folder_.string(), why);
}

std::filesystem::path BlobCache::file_of(const std::string& key) const {
  return folder_ / fmt::format("{:016x}.blob", fnv1a(key.data(), key.size()));
}

std::vector<std::byte> BlobCache::get(const std::string& key) const {
  if (!safe()) return {};
  File file = open_file(file_of(key), os::to_read, "rb");
  Header h;
  if (!file || std::fread(&h, sizeof h, 1, file.get()) != 1 || std::memcmp(h.magic, magic, sizeof magic) != 0 ||
      h.key_bytes != key.size() || h.bytes > largest_entry)
    return {};
  std::string stored(key.size(), '\0');
  std::vector<std::byte> bytes(h.bytes);
  if (std::fread(stored.data(), 1, stored.size(), file.get()) != stored.size() || stored != key ||
      std::fread(bytes.data(), 1, bytes.size(), file.get()) != bytes.size() || std::fgetc(file.get()) != EOF ||
      h.checksum != fnv1a(bytes.data(), bytes.size()))
    return {};
  os::touch(os::descriptor_of(file.get()));  // marks it as recently used
  return bytes;
}

void BlobCache::make_room() const {
  namespace fs = std::filesystem;
  struct Entry {
    fs::file_time_type used;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  uint64_t all = 0;
  std::error_code ec;
  for (fs::directory_iterator it(folder_, ec), end; !ec && it != end; it.increment(ec)) {
    std::error_code gone;
    Entry e{it->last_write_time(gone), it->file_size(gone), it->path()};
    if (gone || !it->is_regular_file(gone) || it->is_symlink(gone) || !is_ours(e.path.filename().string())) continue;
    // Temporary files of killed processes; younger ones may still be in use by another process.
    bool draft = e.path.extension() == ".new", old = fs::file_time_type::clock::now() - e.used > std::chrono::hours(1);
    if (draft && old) fs::remove(e.path, gone);
    if (draft) continue;
    all += e.bytes;
    entries.push_back(std::move(e));
  }
  if (all <= most_bytes_) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (size_t i = 0; i < entries.size() && all > most_bytes_; ++i) {
    std::error_code gone;
    if (fs::remove(entries[i].path, gone)) all -= entries[i].bytes;
  }
}

void BlobCache::put(const std::string& key, const void* from, size_t bytes) const {
  if (folder_.empty() || bytes == 0 || bytes > largest_entry) return;
  std::error_code ec;
  std::filesystem::create_directories(folder_.parent_path(), ec);
  os::make_private_folder(folder_.string());  // safe() checks one that exists
  if (!safe()) {
    warn_once("it must be a folder owned by you with mode 0700");
    return;
  }
  static std::atomic<unsigned> counter{0};
  auto place = file_of(key);
  auto draft = folder_ / fmt::format("{}.{}.{}.new", place.filename().string(), os::process_id(), counter++);
  Header h{{}, key.size(), bytes, fnv1a(from, bytes)};
  std::memcpy(h.magic, magic, sizeof magic);
  File file = open_file(draft, os::to_write | os::make_new, "wb");
  if (!file) return warn_once(std::strerror(errno));
  bool whole = std::fwrite(&h, sizeof h, 1, file.get()) == 1 &&
               std::fwrite(key.data(), 1, key.size(), file.get()) == key.size() &&
               std::fwrite(from, 1, bytes, file.get()) == bytes;
  whole = std::fclose(file.release()) == 0 && whole;
  if (whole && os::replace_file(draft.string(), place.string())) {
    // The folder is scanned after the first put of this object, and again after many bytes were added.
    if ((unseen_ += bytes) > most_bytes_ / 16) {
      unseen_ = 0;
      make_room();
    }
    return;
  }
  warn_once(std::strerror(errno));
  os::remove_file(draft.string());
}

}  // namespace tutti
