// PNG files by libpng. png.h beside it writes pictures with zlib alone, so that no optional library is needed for that.
#include <fmt/format.h>

#include "core/base/status.h"
#include "data/files/image_file.h"

#ifdef TUTTI_HAS_PNG
#include <png.h>

#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>
#endif

namespace tutti {
namespace {

constexpr std::string_view signature = "\x89PNG\r\n\x1a\n";

#ifdef TUTTI_HAS_PNG

/// From the chunk IHDR, which comes first.
ImageForm header(const std::string& path, std::string_view head) {
  auto number = [&](size_t at) {
    int64_t x = 0;
    for (size_t i = at; i < at + 4; ++i) x = x << 8 | static_cast<unsigned char>(head[i]);
    return x;
  };
  if (head.size() < 26 || head.substr(12, 4) != "IHDR") throw_damaged_image(path, "PNG", "its header is missing");
  bool grey = (head[25] & 2) == 0;  // neither RGB nor a palette
  ImageForm form{.channels = grey ? 1 : 3, .height = number(20), .width = number(16)};
  if (form.height < 1 || form.width < 1) throw_damaged_image(path, "PNG", "its header tells a side of 0");
  return form;
}

ImageForm form_of(const std::string& path) {
  std::array<char, 26> head = {};
  std::ifstream in(path, std::ios::binary);
  in.read(head.data(), head.size());
  return header(path, {head.data(), static_cast<size_t>(in.gcount())});
}

struct Reading {
  std::string_view left;
  std::array<char, 160> error = {};
};

void take(png_structp png, png_bytep to, size_t bytes) {
  auto* r = static_cast<Reading*>(png_get_io_ptr(png));
  if (bytes > r->left.size()) png_error(png, "the file ends too early");
  std::memcpy(to, r->left.data(), bytes);
  r->left.remove_prefix(bytes);
}

void fail(png_structp png, png_const_charp text) {
  auto* r = static_cast<Reading*>(png_get_error_ptr(png));
  std::snprintf(r->error.data(), r->error.size(), "%s", text);
  png_longjmp(png, 1);
}

void ignore(png_structp, png_const_charp) {}

/// Nothing with a destructor may live here: libpng jumps out of it.
bool decode_rows(png_structp png, png_infop info, Reading& reading, int channels, size_t row_bytes, png_bytepp rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_read_fn(png, &reading, take);
  png_read_info(png, info);
  png_set_strip_16(png);
  png_set_expand(png);  // palettes, fewer than 8 bits
  png_set_strip_alpha(png);
  if (channels == 3) png_set_gray_to_rgb(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  if (png_get_rowbytes(png, info) != row_bytes) png_error(png, "its pixels are of another kind than its header says");
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}

void decode(const std::string& path, std::string_view bytes, const ImageForm& form, unsigned char* pixels) {
  ImageForm found = header(path, bytes);
  if (found.height != form.height || found.width != form.width || found.channels > form.channels)
    throw_other_image(path, found, form);
  Reading reading{bytes, {}};
  auto row_bytes = static_cast<size_t>(form.width * form.channels);
  std::vector<png_bytep> rows(static_cast<size_t>(form.height));
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = pixels + y * row_bytes;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, fail, ignore);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  bool good = info && decode_rows(png, info, reading, static_cast<int>(form.channels), row_bytes, rows.data());
  png_destroy_read_struct(&png, &info, nullptr);
  if (!good) throw_damaged_image(path, "PNG", reading.error[0] ? reading.error.data() : "libpng cannot start");
}

#else

[[noreturn]] void lacking(const std::string& path) {
  throw invalid(fmt::format("{}: this build of Tutti reads no PNG files: libpng was not there", path),
                "install it (Debian: libpng-dev) and build again");
}
ImageForm form_of(const std::string& path) { lacking(path); }
void decode(const std::string& path, std::string_view, const ImageForm&, unsigned char*) { lacking(path); }

#endif

}  // namespace

const ImageCodec png_codec{"PNG", signature, form_of, decode};

}  // namespace tutti
