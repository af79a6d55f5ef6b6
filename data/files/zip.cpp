#include "data/files/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/base/printable.h"
#include "core/base/status.h"

namespace tutti {
namespace {

constexpr uint64_t end_bytes = 22, locator_bytes = 20, end64_bytes = 56, entry_bytes = 46, local_bytes = 30;
constexpr uint64_t most_of_a_byte = 1032;  // largest expansion of one byte by deflate
constexpr const char* damaged = "the file is damaged or not a NumPy archive; use another file";

template <class T>
T number(const uint8_t* at) {
  T x = 0;
  for (size_t i = sizeof(T); i-- > 0;) x = static_cast<T>(x << 8 | at[i]);
  return x;
}

[[noreturn]] void fail_at(const RangedFile& file, uint64_t at, const std::string& what) {
  throw invalid(fmt::format("{}, byte {}: {}", file.path(), at, what), damaged);
}

bool is(const uint8_t* at, uint8_t a, uint8_t b) { return at[0] == 'P' && at[1] == 'K' && at[2] == a && at[3] == b; }

}  // namespace

ZipFile::ZipFile(const std::string& path) : file_(path, "NumPy archive") {
  // The end record is the last, followed only by a comment, whose length it contains.
  uint64_t size = file_.size(), tail = std::min<uint64_t>(size, end_bytes + 65535);
  std::vector<uint8_t> bytes(tail);
  file_.read(size - tail, bytes.data(), tail);
  std::string begin(std::min<uint64_t>(size, 6), '\0');
  file_.read(0, begin.data(), begin.size());
  if (begin == "\x93NUMPY")
    throw invalid(fmt::format("{}: this is a single array (.npy), not an .npz archive", path),
                  "save the arrays with np.savez(FILE, input=…, label=…)");
  if (tail < 4 || (!is(bytes.data(), 3, 4) && size == tail && !is(bytes.data(), 5, 6)))
    fail_at(file_, 0, "not a zip archive: it does not begin with 'PK'");
  uint64_t end = tail;
  for (uint64_t at = tail < end_bytes ? 0 : tail - end_bytes + 1; at-- > 0;)
    if (is(&bytes[at], 5, 6) && number<uint16_t>(&bytes[at + 20]) == tail - at - end_bytes) {
      end = at;
      break;
    }
  if (end == tail) fail_at(file_, size, "the archive's directory is missing: the file is truncated");
  const uint8_t* record = &bytes[end];
  uint64_t count = number<uint16_t>(record + 10), length = number<uint32_t>(record + 12),
           at = number<uint32_t>(record + 16), place = size - tail + end;
  if (count == 0xffff || length == 0xffffffff || at == 0xffffffff) {
    std::array<uint8_t, locator_bytes> locator{};
    std::array<uint8_t, end64_bytes> large{};
    if (place < locator_bytes) fail_at(file_, place, "the zip64 locator is missing");
    file_.read(place - locator_bytes, locator.data(), locator_bytes);
    place = number<uint64_t>(&locator[8]);
    if (!is(locator.data(), 6, 7) || place > size || size - place < end64_bytes)
      fail_at(file_, place, "the zip64 directory is missing");
    file_.read(place, large.data(), end64_bytes);
    if (!is(large.data(), 6, 6)) fail_at(file_, place, "the zip64 directory is missing");
    count = number<uint64_t>(&large[32]);
    length = number<uint64_t>(&large[40]);
    at = number<uint64_t>(&large[48]);
  }
  if (at > place || length > place - at || count > length / entry_bytes)
    fail_at(file_, place,
            fmt::format("a directory of {} entries in {} bytes from byte {} does not fit into the file", count, length,
                        at));
  read_directory(at, length, count);
  check_places(at);
}

void ZipFile::read_directory(uint64_t at, uint64_t bytes, uint64_t count) {
  std::vector<uint8_t> all(bytes);
  file_.read(at, all.data(), bytes);
  std::set<std::string> names;
  uint64_t next = 0;
  for (uint64_t i = 0; i < count; ++i) {
    auto fail = [&](const std::string& what) { fail_at(file_, at + next, what); };
    const uint8_t* e = &all[next];
    if (bytes - next < entry_bytes || !is(e, 1, 2)) fail("expected a directory entry");
    uint64_t name = number<uint16_t>(e + 28), extra = number<uint16_t>(e + 30), comment = number<uint16_t>(e + 32);
    if (bytes - next - entry_bytes < name + extra + comment) fail("the directory ends inside an entry");
    ZipEntry z{.name = std::string(reinterpret_cast<const char*>(e + entry_bytes), name),
               .deflated = number<uint16_t>(e + 10) == 8,
               .crc = number<uint32_t>(e + 16),
               .packed = number<uint32_t>(e + 20),
               .bytes = number<uint32_t>(e + 24),
               .at = number<uint32_t>(e + 42)};
    // Sizes beyond 32 bits are in an extra field, which contains only those that are 2^32 - 1 in the entry.
    const uint8_t *field = e + entry_bytes + name, *fields_end = field + extra;
    while (fields_end - field >= 4) {
      uint64_t id = number<uint16_t>(field), length = number<uint16_t>(field + 2);
      field += 4;
      if (length > static_cast<uint64_t>(fields_end - field)) fail("a field is longer than its entry");
      if (id == 1)
        for (uint64_t* x : {&z.bytes, &z.packed, &z.at})
          if (*x == 0xffffffff && length >= 8) {
            *x = number<uint64_t>(field);
            field += 8;
            length -= 8;
          }
      field += length;
    }
    std::string what = fmt::format("'{}'", printable(z.name, 80));
    if (number<uint16_t>(e + 8) & 0x41) fail(what + " is encrypted: write it without a password");
    if (uint16_t method = number<uint16_t>(e + 10); method != 0 && method != 8)
      fail(
          fmt::format("{} is compressed by method {}, expected none (0) or deflate (8), as np.savez and "
                      "np.savez_compressed write",
                      what, method));
    if (z.deflated ? z.bytes / most_of_a_byte > z.packed : z.bytes != z.packed)
      fail(fmt::format("{}: {} bytes in the file cannot contain {} uncompressed bytes", what, z.packed, z.bytes));
    if (!names.insert(z.name).second) fail(what + " occurs twice");
    entries_.push_back(std::move(z));
    next += entry_bytes + name + extra + comment;
  }
}

/// Advances every entry's `at` from its local header to its data.
void ZipFile::check_places(uint64_t directory) {
  std::vector<ZipEntry*> order;
  for (ZipEntry& e : entries_) order.push_back(&e);
  std::ranges::sort(order, {}, &ZipEntry::at);
  uint64_t free = 0;
  for (ZipEntry* e : order) {
    std::array<uint8_t, local_bytes> local{};
    if (e->at < free || e->at > directory || directory - e->at < local_bytes)
      fail_at(file_, e->at, fmt::format("'{}' overlaps other parts of the archive", printable(e->name, 80)));
    file_.read(e->at, local.data(), local_bytes);
    if (!is(local.data(), 3, 4))
      fail_at(file_, e->at,
              fmt::format("the local header of '{}' is missing at this position", printable(e->name, 80)));
    e->at += local_bytes + number<uint16_t>(&local[26]) + number<uint16_t>(&local[28]);
    if (e->at > directory || e->packed > directory - e->at)
      fail_at(file_, e->at, fmt::format("'{}' of {} bytes overlaps the directory", printable(e->name, 80), e->packed));
    free = e->at + e->packed;
  }
}

struct ZipReader::Inflater {
  z_stream stream{};
  std::vector<uint8_t> packed = std::vector<uint8_t>(1 << 16);
  Inflater() {
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
      throw Error(Code::no_memory, "not enough memory to unpack an archive");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
};

ZipReader::ZipReader(const ZipFile& file, const ZipEntry& entry)
    : file_(file), entry_(entry), inflater_(entry.deflated ? std::make_unique<Inflater>() : nullptr) {}
ZipReader::~ZipReader() = default;

void ZipReader::fail(const std::string& what) const {
  throw invalid(fmt::format("{}: '{}': {}", file_.path(), printable(entry_.name, 80), what), damaged);
}

void ZipReader::read(void* to, uint64_t bytes) {
  if (bytes > entry_.bytes - done_)
    fail(fmt::format("cannot read {} bytes from byte {}: the entry has {}", bytes, done_, entry_.bytes));
  auto* out = static_cast<uint8_t*>(to);
  if (!inflater_) {
    file_.file_.read(entry_.at + done_, out, bytes);
  } else {
    z_stream& z = inflater_->stream;
    for (uint64_t left = bytes; left > 0;) {
      if (z.avail_in == 0) {
        uint64_t n = std::min<uint64_t>(inflater_->packed.size(), entry_.packed - packed_done_);
        file_.file_.read(entry_.at + packed_done_, inflater_->packed.data(), n);
        packed_done_ += n;
        z.next_in = inflater_->packed.data();
        z.avail_in = static_cast<uInt>(n);
      }
      auto step = static_cast<uInt>(std::min<uint64_t>(left, 1u << 30));
      z.next_out = out + (bytes - left);
      z.avail_out = step;
      int result = inflate(&z, Z_NO_FLUSH);
      left -= step - z.avail_out;
      bool stuck = result == Z_BUF_ERROR && packed_done_ == entry_.packed;
      if ((result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) || stuck ||
          (result == Z_STREAM_END && left > 0))
        fail(fmt::format("its compressed data is damaged after byte {}", done_ + bytes - left));
    }
  }
  if (bytes > 0) crc_ = static_cast<uint32_t>(crc32_z(crc_, out, bytes));  // for no bytes zlib would reset it
  done_ += bytes;
  if (done_ == entry_.bytes && crc_ != entry_.crc) fail("its checksum does not match: the data is damaged");
}

}  // namespace tutti
