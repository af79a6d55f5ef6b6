// Reads PNG files with libpng. Writing (png.h) uses only zlib, so that it needs no optional library.
#include <fmt/format.h>

#include "core/base/status.h"
#include "data/files/exif.h"
#include "data/files/image_file.h"

#ifdef TUTTI_HAS_PNG
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>
#endif

namespace tutti {
namespace {

constexpr std::string_view png_signature = "\x89PNG\r\n\x1a\n";

#ifdef TUTTI_HAS_PNG

/// Reads the chunk IHDR, which comes first.
ImageForm header(const std::string& path, std::string_view head) {
  auto number = [&](size_t at) {
    int64_t x = 0;
    for (size_t i = at; i < at + 4; ++i) x = x << 8 | static_cast<unsigned char>(head[i]);
    return x;
  };
  if (head.size() < 26 || head.substr(12, 4) != "IHDR") throw_damaged_image(path, "PNG", "its header is missing");
  bool grey = (head[25] & 2) == 0;  // no color bit: neither RGB nor palette
  ImageForm form{.channels = grey ? 1 : 3, .height = number(20), .width = number(16)};
  if (form.height < 1 || form.width < 1) throw_damaged_image(path, "PNG", "its header has a width or height of 0");
  return form;
}

/// The orientation in the chunk eXIf, which may come before or after the pixels. read(at, n): n bytes of the file,
/// fewer at its end.
template <class Read>
int orientation_in(Read read) {
  constexpr uint64_t signature_bytes = 8, most = 1 << 16;
  for (uint64_t at = signature_bytes;;) {
    std::string head(read(at, 8));
    if (head.size() < 8 || head.ends_with("IEND")) return 1;
    uint64_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(head[i]);
    if (head.ends_with("eXIf")) return exif_orientation(std::string(read(at + 8, std::min(length, most))));
    at += 8 + length + 4;
  }
}

StoredImage png_form(const std::string& path) {
  std::ifstream in(std::filesystem::path(path), std::ios::binary);
  auto read = [&](uint64_t at, uint64_t bytes) {
    std::string text(bytes, '\0');
    in.clear();
    in.seekg(static_cast<std::streamoff>(at));
    in.read(text.data(), static_cast<std::streamsize>(bytes));
    text.resize(static_cast<size_t>(in.gcount()));
    return text;
  };
  return {header(path, read(0, 26)), orientation_in(read)};
}

struct PngReading {
  std::string_view left;
  std::array<char, 160> error = {};
};

void take(png_structp png, png_bytep to, size_t bytes) {
  auto* r = static_cast<PngReading*>(png_get_io_ptr(png));
  if (bytes > r->left.size()) png_error(png, "the file ends too early");
  std::memcpy(to, r->left.data(), bytes);
  r->left.remove_prefix(bytes);
}

void fail(png_structp png, png_const_charp text) {
  auto* r = static_cast<PngReading*>(png_get_error_ptr(png));
  std::snprintf(r->error.data(), r->error.size(), "%s", text);
  png_longjmp(png, 1);
}

void ignore(png_structp, png_const_charp) {}

/// No objects with destructors here: libpng leaves this function by longjmp.
bool decode_rows(png_structp png, png_infop info, PngReading& reading, int channels, size_t row_bytes,
                 png_bytepp rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_read_fn(png, &reading, take);
  // Skips text, profiles and EXIF: libpng would allocate the size claimed by such a chunk before reading it.
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(png, info);
  png_set_strip_16(png);
  png_set_expand(png);  // expands palettes and samples of fewer than 8 bits
  png_set_strip_alpha(png);
  if (channels == 3) png_set_gray_to_rgb(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  if (png_get_rowbytes(png, info) != row_bytes) png_error(png, "its pixel format does not match its header");
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}

int decode_png(const std::string& path, std::string_view bytes, const ImageForm& form, unsigned char* pixels) {
  auto read = [&](uint64_t at, uint64_t n) { return bytes.substr(std::min<uint64_t>(at, bytes.size()), n); };
  StoredImage found{header(path, bytes), orientation_in(read)};
  ImageForm turned = found.turned();
  if (turned.height != form.height || turned.width != form.width || turned.channels > form.channels)
    throw_other_image(path, turned, form);
  PngReading reading{bytes, {}};
  auto row_bytes = static_cast<size_t>(found.form.width * form.channels);
  std::vector<png_bytep> rows(static_cast<size_t>(found.form.height));
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = pixels + y * row_bytes;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, fail, ignore);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  bool good = info && decode_rows(png, info, reading, static_cast<int>(form.channels), row_bytes, rows.data());
  png_destroy_read_struct(&png, &info, nullptr);
  if (!good) throw_damaged_image(path, "PNG", reading.error[0] ? reading.error.data() : "libpng cannot start");
  return found.orientation;
}

#else

[[noreturn]] void png_lacking(const std::string& path) {
  throw invalid(fmt::format("{}: this build of Tutti does not support PNG files, because libpng was missing", path),
                "install it (Debian: libpng-dev) and build again");
}
StoredImage png_form(const std::string& path) { png_lacking(path); }
int decode_png(const std::string& path, std::string_view, const ImageForm&, unsigned char*) { png_lacking(path); }

#endif

}  // namespace

const ImageCodec png_codec{"PNG", png_signature, png_form, decode_png};

}  // namespace tutti
