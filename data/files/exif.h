// What EXIF (CIPA DC-008) says of how an image is to be turned.
#pragma once
#include <cstdint>
#include <string_view>

namespace tutti {

/// TIFF's tag Orientation, 1 to 8, of the bytes of an EXIF record: a TIFF file, behind "Exif\0\0" or not. 1, which is
/// as the pixels lie, where it says nothing that can be understood.
int exif_orientation(std::string_view exif);

/// Whether rows become columns.
inline bool swaps_sides(int orientation) { return orientation >= 5; }

/// The stored pixel that is shown at row y and column x, where `height` rows of `width` pixels are stored.
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
