#include "data/files/npz.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>

#include "core/base/printable.h"
#include "core/base/status.h"
#include "data/files/file_kind.h"
#include "data/files/npy.h"
#include "data/files/whole_file.h"
#include "data/files/zip.h"

namespace tutti {
namespace {

constexpr std::string_view ending = ".npy";

void put(std::string& to, uint64_t x, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) to += static_cast<char>(x >> (8 * i) & 0xff);
}

/// The fields common to a local header and a directory entry: version 2.0, stored, 1980-01-01.
std::string about(uint32_t crc, uint64_t bytes, size_t name) {
  std::string text;
  for (uint64_t x : {20, 0, 0, 0, 33}) put(text, x, 2);
  for (uint64_t x : {uint64_t{crc}, bytes, bytes}) put(text, x, 4);
  for (uint64_t x : {uint64_t{name}, uint64_t{0}}) put(text, x, 2);
  return text;
}

}  // namespace

HostTensors read_npz(const std::string& path) {
  FileKind kind = file_kind(path);
  if (kind != FileKind::npz && kind != FileKind::zip && kind != FileKind::folder && kind != FileKind::other)
    throw foreign_file(path, kind, "a .npz file of NumPy");
  ZipFile file(path);
  HostTensors all;
  for (const ZipEntry& e : file.entries()) {
    std::string place = fmt::format("{}: '{}'", path, printable(e.name, 80));
    if (!e.name.ends_with(ending) || e.name.size() == ending.size())
      throw invalid(place + " is not an array (.npy)", "save the file with np.savez");
    ZipReader reader(file, e);
    all.emplace(e.name.substr(0, e.name.size() - ending.size()),
                read_npy([&](void* to, uint64_t bytes) { reader.read(to, bytes); }, e.bytes, place));
  }
  return all;
}

void write_npz(const std::string& path, const HostTensors& arrays) {
  struct Entry {
    std::string name, header, about;
    uint64_t at;
    const HostTensor* array;
  };
  std::vector<Entry> entries;
  uint64_t at = 0, directory = 0;
  constexpr uint64_t local_bytes = 30, entry_bytes = 46, end_bytes = 22, most = 0xffffffff - end_bytes;
  for (const auto& [name, t] : arrays) {
    Entry e{name + std::string(ending), npy_header(t.type), "", at, &t};
    uint64_t bytes = e.header.size() + t.bytes.size();
    uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(e.header.data()), e.header.size());
    if (!t.bytes.empty()) crc = crc32_z(crc, reinterpret_cast<const Bytef*>(t.bytes.data()), t.bytes.size());
    e.about = about(static_cast<uint32_t>(crc), bytes, e.name.size());
    at += local_bytes + e.name.size() + bytes;
    directory += entry_bytes + e.name.size();
    if (e.name.size() > 0xffff || at + directory > most || entries.size() >= 0xfffe)
      throw invalid(fmt::format("{}: the arrays do not fit into an archive of 4 GiB", path),
                    "use a safetensors file instead");
    entries.push_back(std::move(e));
  }
  WholeFile file(path, at + directory + end_bytes);
  auto write = [&](const std::string& text) { file.write(text.data(), text.size()); };
  std::string listed;
  for (const Entry& e : entries) {
    write("PK\x03\x04" + e.about + e.name + e.header);
    file.write(e.array->bytes.data(), e.array->bytes.size());
    listed += "PK\x01\x02";
    put(listed, 20, 2);
    listed += e.about;
    put(listed, 0, 10);  // comment, disk, attributes
    put(listed, e.at, 4);
    listed += e.name;
  }
  std::string end = "PK\x05\x06";
  put(end, 0, 4);
  put(end, entries.size(), 2);
  put(end, entries.size(), 2);
  put(end, listed.size(), 4);
  put(end, at, 4);
  put(end, 0, 2);
  write(listed + end);
  file.become_target();
}

}  // namespace tutti
