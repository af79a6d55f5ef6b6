#include "data/file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/status.h"

namespace tutti::data {

std::string read_file(const std::string& path, const std::string& remedy) {
  std::error_code error;
  std::filesystem::file_status there = std::filesystem::status(path, error);
  if (!std::filesystem::is_regular_file(there))
    throw invalid(fmt::format("{}: {}", path,
                              std::filesystem::is_directory(there) ? "a folder, expected a file"
                              : std::filesystem::exists(there)     ? "not a regular file"
                                                                   : "there is no such file"),
                  remedy);
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  if (in.peek() != std::ifstream::traits_type::eof()) text << in.rdbuf();
  if (in.bad() || !in.is_open() || !text)
    throw invalid(fmt::format("{}: cannot be read", path), "check its permissions");
  return text.str();
}

std::string unpacked(std::string bytes, const std::string& path) {
  if (!bytes.starts_with("\x1f\x8b")) return bytes;
  constexpr int gzip = 16 + MAX_WBITS;
  z_stream z{};
  if (inflateInit2(&z, gzip) != Z_OK) throw Error(Code::no_memory, "zlib cannot be initialised");
  std::string text, part(1 << 18, '\0');
  z.next_in = reinterpret_cast<Bytef*>(bytes.data());
  size_t left = bytes.size();
  int code = Z_OK;
  while (code == Z_OK || (code == Z_STREAM_END && left + z.avail_in > 0)) {
    if (code == Z_STREAM_END) inflateReset(&z);  // the next member of the file
    if (z.avail_in == 0) left -= z.avail_in = static_cast<uInt>(std::min<size_t>(left, 1u << 30));
    z.next_out = reinterpret_cast<Bytef*>(part.data());
    z.avail_out = static_cast<uInt>(part.size());
    code = inflate(&z, Z_NO_FLUSH);
    text.append(part, 0, part.size() - z.avail_out);
    if (code == Z_OK && left + z.avail_in == 0 && z.avail_out > 0) code = Z_BUF_ERROR;
  }
  inflateEnd(&z);
  if (code != Z_STREAM_END)
    throw invalid(fmt::format("{}: {}", path,
                              code == Z_BUF_ERROR ? "the gzip stream ends too early" : "the gzip stream is damaged"),
                  "fetch or write the file again");
  return text;
}

}  // namespace tutti::data
