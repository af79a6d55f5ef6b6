#include "data/files/png.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>

#include "core/base/status.h"
#include "data/files/whole_file.h"

namespace tutti {
namespace {

std::string big_endian(uint32_t x) {
  return {static_cast<char>(x >> 24), static_cast<char>(x >> 16), static_cast<char>(x >> 8), static_cast<char>(x)};
}

std::string chunk(const std::string& type, const std::string& data) {
  std::string body = type + data;
  auto sum = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return big_endian(static_cast<uint32_t>(data.size())) + body + big_endian(static_cast<uint32_t>(sum));
}

std::string packed(const std::string& rows) {
  uLongf size = compressBound(rows.size());
  std::string out(size, '\0');
  if (compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(rows.data()), rows.size()) !=
      Z_OK)
    throw Error(Code::no_memory, fmt::format("PNG: not enough memory to compress {} bytes", rows.size()),
                "use fewer images");
  out.resize(size);
  return out;
}

}  // namespace

std::string png_grid(const HostTensor& images, const std::string& path) {
  const Shape& s = images.type.shape;
  bool fits = images.type.dtype == DType::f32 && s.size() == 4 && (s[1] == 1 || s[1] == 3) && num_elements(s) > 0;
  if (!fits)
    throw invalid(fmt::format("{}: images must be f32 [count, 1 or 3, H, W] to be written as PNG, got {}", path,
                              to_string(images.type)));
  auto columns = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(s[0]))));
  int64_t lines = (s[0] + columns - 1) / columns;
  int64_t width = columns * (s[3] + 1) - 1, height = lines * (s[2] + 1) - 1;
  int64_t row = 1 + width * s[1];  // filter byte 0 (none), then the pixels
  if (width > 1 << 14 || height > 1 << 14)
    throw invalid(fmt::format("{}: a picture of {}x{} pixels is too large", path, width, height), "use fewer images");
  std::string rows(static_cast<size_t>(height * row), '\0');
  for (int64_t i = 0, at = 0; i < s[0]; ++i)
    for (int64_t c = 0; c < s[1]; ++c)
      for (int64_t y = 0; y < s[2]; ++y)
        for (int64_t x = 0; x < s[3]; ++x, ++at) {
          double value = load_element(DType::f32, images.bytes.data(), static_cast<size_t>(at));
          int64_t place = (i / columns * (s[2] + 1) + y) * row + 1 + (i % columns * (s[3] + 1) + x) * s[1] + c;
          value = std::isnan(value) ? 0 : std::clamp(value, 0.0, 1.0);
          rows[static_cast<size_t>(place)] = static_cast<char>(std::lround(255 * value));
        }
  std::string header = big_endian(static_cast<uint32_t>(width)) + big_endian(static_cast<uint32_t>(height));
  header += {8, s[1] == 3 ? '\2' : '\0', 0, 0, 0};  // 8 bits, RGB or grey, deflate, adaptive filters, not interlaced
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", header) + chunk("IDAT", packed(rows)) + chunk("IEND", "");
}

void write_png_grid(const std::string& path, const HostTensor& images) {
  write_whole_file(path, png_grid(images, path));
}

}  // namespace tutti
