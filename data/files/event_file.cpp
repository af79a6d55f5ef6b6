#include "data/files/event_file.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "core/base/status.h"
#include "core/os/this_process.h"
#include "data/files/file_lock.h"

namespace tutti {
namespace {

static_assert(std::endian::native == std::endian::little, "records and messages are little-endian");

constexpr std::array<uint32_t, 256> make_table() {
  constexpr uint32_t polynomial = 0x82f63b78;  // Castagnoli's, reflected
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = c & 1 ? c >> 1 ^ polynomial : c >> 1;
    table[i] = c;
  }
  return table;
}

template <class T>
std::string bytes_of(T x) {
  return {reinterpret_cast<const char*>(&x), sizeof x};
}

// Encodings of protocol-buffer fields (https://protobuf.dev/programming-guides/encoding).

std::string varint(uint64_t x) {
  std::string out;
  for (; x >= 0x80; x >>= 7) out += static_cast<char>(x | 0x80);
  return out + static_cast<char>(x);
}
std::string key(uint32_t field, uint32_t wire) { return varint(field << 3 | wire); }
std::string number(uint32_t field, int64_t x) { return key(field, 0) + varint(static_cast<uint64_t>(x)); }
std::string real(uint32_t field, double x) { return key(field, 1) + bytes_of(x); }
std::string real(uint32_t field, float x) { return key(field, 5) + bytes_of(x); }
std::string text(uint32_t field, const std::string& x) { return key(field, 2) + varint(x.size()) + x; }

/// TFRecord's masked CRC: a checksum that may itself be part of checksummed data.
uint32_t masked(const std::string& data) {
  uint32_t c = crc32c(data.data(), data.size());
  return (c >> 15 | c << 17) + 0xa282ead8u;
}

/// TensorBoard requires the first parts of the name; host and process id distinguish runs started in the same second.
std::string path_in(const std::string& folder) {
  const std::string host = os::host_name();
  return fmt::format("{}/events.out.tfevents.{}.{}.{}.tutti", folder, std::time(nullptr), host.empty() ? "host" : host,
                     os::process_id());
}

}  // namespace

uint32_t crc32c(const void* data, size_t bytes) {
  static constexpr std::array<uint32_t, 256> table = make_table();
  uint32_t c = ~uint32_t{0};
  for (size_t i = 0; i < bytes; ++i) c = table[(c ^ static_cast<const uint8_t*>(data)[i]) & 0xff] ^ c >> 8;
  return ~c;
}

EventFile::EventFile(const std::string& folder) : file_(path_in(folder)) {
  if (!write(real(1, static_cast<double>(std::time(nullptr))) + text(3, "brain.Event:2")))
    throw invalid(fmt::format("{}: cannot be written: {}", path(), std::strerror(errno)),
                  remedy_of_writing(errno, path()));
}

bool EventFile::add(int64_t step, double seconds, const Scalars& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) summary += text(1, text(1, tag) + real(2, static_cast<float>(value)));
  return write(real(1, seconds) + number(2, step) + text(5, summary));
}

bool EventFile::write(const std::string& event) {
  std::string length = bytes_of(uint64_t{event.size()});
  return file_.add(length + bytes_of(masked(length)) + event + bytes_of(masked(event)));
}

}  // namespace tutti
