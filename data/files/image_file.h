// Images in PNG files (ISO/IEC 15948) and JPEG files (ISO/IEC 10918-1), distinguished by their signatures.
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

/// The size from the header of a PNG or JPEG file, with EXIF orientation applied; nothing is decoded. Throws
/// Error(invalid) naming the file if it is neither, cannot be read, or has a side above 2^14.
ImageForm image_form(const std::string& path);

/// Decodes the file into u8 [channels, height, width] of that form, with EXIF orientation applied. Grey becomes RGB if
/// the form has 3 channels, alpha is dropped, 16-bit samples keep their upper 8 bits. Throws Error(invalid) naming the
/// file if it is damaged, truncated or of another size. Thread-safe.
void read_image(const std::string& path, const ImageForm& form, std::byte* to);

/// An image as its file stores it.
struct StoredImage {
  ImageForm form;
  int orientation = 1;  ///< EXIF orientation, 1 to 8
  /// The form after applying the orientation.
  ImageForm turned() const;
};

/// One image file format.
struct ImageCodec {
  const char* name;            ///< "PNG"
  std::string_view signature;  ///< the first bytes of such a file
  StoredImage (*form)(const std::string& path);
  /// Decodes to rows of stored pixels of `form.channels` bytes each; returns the EXIF orientation. Throws
  /// Error(invalid) if the image does not have that form once turned.
  int (*decode)(const std::string& path, std::string_view bytes, const ImageForm& form, unsigned char* pixels);
};
extern const ImageCodec png_codec, jpeg_codec;

/// Throws the error for a damaged file, with the library's reason.
[[noreturn]] void throw_damaged_image(const std::string& path, const char* codec, const char* reason);
/// Throws the error for a file of another size than `form`.
[[noreturn]] void throw_other_image(const std::string& path, const ImageForm& found, const ImageForm& form);

}  // namespace tutti
