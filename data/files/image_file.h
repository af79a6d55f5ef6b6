// Images in PNG files (ISO/IEC 15948) and JPEG files (ISO/IEC 10918-1), told apart by how they begin.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tutti {

/// The size of an image; channels: 1 (grey) or 3 (RGB).
struct ImageForm {
  int64_t channels = 0, height = 0, width = 0;
  bool operator==(const ImageForm&) const = default;
};

/// What the header of a PNG or JPEG file says, turned as its EXIF orientation asks for; nothing is decoded. Throws
/// Error(invalid) naming the file where it is no such image, where it cannot be read, and where a side is above 2^14.
ImageForm image_form(const std::string& path);

/// Decodes the file into u8 [channels, height, width] of that form, turned likewise. Grey becomes RGB where the form
/// has 3 channels, opacity is left out, 16 bits lose their lower 8. Throws Error(invalid) naming the file that is
/// damaged, cut short or of another size. Many threads may call it at once.
void read_image(const std::string& path, const ImageForm& form, std::byte* to);

/// An image as its file stores it.
struct StoredImage {
  ImageForm form;
  int orientation = 1;  ///< of EXIF, 1 to 8
  /// The form that is shown.
  ImageForm turned() const;
};

/// One kind of image files.
struct ImageCodec {
  const char* name;            ///< "PNG"
  std::string_view signature;  ///< the first bytes of such a file
  StoredImage (*form)(const std::string& path);
  /// Rows of stored pixels of `form.channels` bytes each; returns their orientation. Throws Error(invalid) where
  /// `bytes` are not of that form once turned.
  int (*decode)(const std::string& path, std::string_view bytes, const ImageForm& form, unsigned char* pixels);
};
extern const ImageCodec png_codec, jpeg_codec;

/// The message and remedy of a damaged file, with the library's reason.
[[noreturn]] void throw_damaged_image(const std::string& path, const char* codec, const char* reason);
/// Of a file that is of another size than `form`.
[[noreturn]] void throw_other_image(const std::string& path, const ImageForm& found, const ImageForm& form);

}  // namespace tutti
