#include "data/files/exif.h"

namespace tutti {
namespace {

/// Reads integers of a TIFF file; 0 beyond its end.
struct Tiff {
  std::string_view bytes;
  bool big_endian = false;
  uint32_t number(uint64_t at, uint64_t size) const {
    uint32_t x = 0;
    for (uint64_t i = 0; i < size; ++i) {
      uint64_t place = at + (big_endian ? i : size - 1 - i);
      x = x << 8 | (place < bytes.size() ? static_cast<unsigned char>(bytes[place]) : 0);
    }
    return x;
  }
};

}  // namespace

int exif_orientation(std::string_view exif) {
  constexpr std::string_view lead("Exif\0\0", 6);
  if (exif.starts_with(lead)) exif.remove_prefix(lead.size());
  Tiff t{exif, exif.starts_with("MM")};
  if (exif.size() < 8 || (!t.big_endian && !exif.starts_with("II")) || t.number(2, 2) != 42) return 1;
  uint64_t directory = t.number(4, 4), entries = t.number(directory, 2);
  int found = 1;
  constexpr uint64_t entry = 12, tag_orientation = 0x112, byte = 1, integer16 = 3, integer32 = 4;
  for (uint64_t k = 0, at = directory + 2; k < entries && at + entry <= exif.size(); ++k, at += entry) {
    uint64_t type = t.number(at + 2, 2), size = type == byte ? 1 : type == integer16 ? 2 : type == integer32 ? 4 : 0;
    if (t.number(at, 2) != tag_orientation || size == 0 || t.number(at + 4, 4) != 1) continue;
    uint32_t n = t.number(at + 8, size);
    if (n >= 1 && n <= 8) found = static_cast<int>(n);
  }
  return found;
}

}  // namespace tutti
