// Image orientation from EXIF (CIPA DC-008).
#pragma once
#include <cstdint>
#include <string_view>

namespace tutti {

/// TIFF's tag Orientation, 1 to 8, from an EXIF record: a TIFF file, with or without "Exif\0\0" before it. 1 (no
/// change) if the tag is missing or malformed.
int exif_orientation(std::string_view exif);

/// Whether rows and columns are swapped.
inline bool swaps_sides(int orientation) { return orientation >= 5; }

/// The stored pixel displayed at row y and column x; the stored image has `height` rows of `width` pixels.
struct StoredPixel {
  int64_t y, x;
};
inline StoredPixel stored_pixel(int orientation, int64_t y, int64_t x, int64_t height, int64_t width) {
  StoredPixel p = swaps_sides(orientation) ? StoredPixel{x, y} : StoredPixel{y, x};
  if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7) p.y = height - 1 - p.y;
  if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8) p.x = width - 1 - p.x;
  return p;
}

}  // namespace tutti
