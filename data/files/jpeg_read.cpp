// Reads JPEG files with libjpeg-turbo.
#include <fmt/format.h>

#include "core/base/status.h"
#include "core/os/file.h"
#include "data/files/exif.h"
#include "data/files/image_file.h"

#ifdef TUTTI_HAS_JPEG
#include <array>
#include <csetjmp>
#include <cstdio>
#include <memory>

#include <jpeglib.h>

#include <jerror.h>
#endif

namespace tutti {
namespace {

constexpr std::string_view jpeg_signature = "\xff\xd8\xff";

#ifdef TUTTI_HAS_JPEG

struct JpegReading {
  jpeg_error_mgr errors = {};  // must be first: libjpeg passes back its address
  std::jmp_buf jump = {};
  std::array<char, JMSG_LENGTH_MAX> text = {};
  int orientation = 1;
};

void fail(j_common_ptr jpeg) {
  auto* r = reinterpret_cast<JpegReading*>(jpeg->err);
  jpeg->err->format_message(jpeg, r->text.data());
  std::longjmp(r->jump, 1);
}

/// libjpeg fills in missing data of a truncated file and only warns; this makes it an error.
void warn(j_common_ptr jpeg, int level) {
  if (level < 0 && (jpeg->err->msg_code == JWRN_JPEG_EOF || jpeg->err->msg_code == JWRN_HIT_MARKER)) fail(jpeg);
}

void say_nothing(j_common_ptr) {}

jpeg_error_mgr* errors_of(JpegReading& r) {
  jpeg_std_error(&r.errors);
  r.errors.error_exit = fail;
  r.errors.emit_message = warn;
  r.errors.output_message = say_nothing;
  return &r.errors;
}

/// Reads the header and the orientation in the first EXIF record.
void read_header(jpeg_decompress_struct& jpeg, JpegReading& r) {
  constexpr int app1 = JPEG_APP0 + 1;
  constexpr std::string_view lead("Exif\0\0", 6);
  jpeg_save_markers(&jpeg, app1, 0xffff);
  jpeg_read_header(&jpeg, TRUE);
  for (jpeg_saved_marker_ptr m = jpeg.marker_list; m; m = m->next) {
    std::string_view data(reinterpret_cast<const char*>(m->data), m->data_length);
    if (m->marker != app1 || !data.starts_with(lead)) continue;
    r.orientation = exif_orientation(data);
    return;
  }
}

/// No objects with destructors here and in the functions below: libjpeg leaves them by longjmp.
bool read_form(jpeg_decompress_struct& jpeg, JpegReading& r, std::FILE* file) {
  if (setjmp(r.jump) != 0) return false;
  jpeg_create_decompress(&jpeg);
  jpeg_stdio_src(&jpeg, file);
  read_header(jpeg, r);
  return true;
}

/// Returns false without an error text if the image has another size.
bool decode_rows(jpeg_decompress_struct& jpeg, JpegReading& r, std::string_view bytes, const ImageForm& form,
                 unsigned char* pixels) {
  if (setjmp(r.jump) != 0) return false;
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  read_header(jpeg, r);
  bool swaps = swaps_sides(r.orientation);
  if (jpeg.image_width != (swaps ? form.height : form.width) || jpeg.image_height != (swaps ? form.width : form.height))
    return false;
  jpeg.out_color_space = form.channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_start_decompress(&jpeg);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row =
        pixels + static_cast<size_t>(jpeg.output_scanline) * jpeg.output_width * static_cast<size_t>(form.channels);
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

StoredImage jpeg_form(const std::string& path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(nullptr, std::fclose);
  if (const int open = os::open_file(path, os::to_read); open >= 0) file.reset(os::stream_of(open, "rb"));
  if (!file) throw invalid(fmt::format("{}: cannot be read", path), "check its permissions");
  JpegReading r;
  jpeg_decompress_struct jpeg = {};
  jpeg.err = errors_of(r);
  bool good = read_form(jpeg, r, file.get());
  J_COLOR_SPACE colours = good ? jpeg.jpeg_color_space : JCS_UNKNOWN;
  ImageForm form{.channels = jpeg.num_components == 1 ? 1 : 3, .height = jpeg.image_height, .width = jpeg.image_width};
  jpeg_destroy_decompress(&jpeg);
  if (!good) throw_damaged_image(path, "JPEG", r.text.data());
  if (colours == JCS_CMYK || colours == JCS_YCCK)
    throw invalid(fmt::format("{}: the image is CMYK, expected grey or RGB", path), "save it as RGB");
  return {form, r.orientation};
}

int decode_jpeg(const std::string& path, std::string_view bytes, const ImageForm& form, unsigned char* pixels) {
  JpegReading r;
  jpeg_decompress_struct jpeg = {};
  jpeg.err = errors_of(r);
  bool good = decode_rows(jpeg, r, bytes, form, pixels);
  StoredImage found{{.channels = form.channels, .height = jpeg.image_height, .width = jpeg.image_width}, r.orientation};
  jpeg_destroy_decompress(&jpeg);
  if (good) return r.orientation;
  if (r.text[0] == '\0') throw_other_image(path, found.turned(), form);
  throw_damaged_image(path, "JPEG", r.text.data());
}

#else

[[noreturn]] void jpeg_lacking(const std::string& path) {
  throw invalid(fmt::format("{}: this build of Tutti does not support JPEG files, because libjpeg was missing", path),
                "install it (Debian: libjpeg-dev) and build again");
}
StoredImage jpeg_form(const std::string& path) { jpeg_lacking(path); }
int decode_jpeg(const std::string& path, std::string_view, const ImageForm&, unsigned char*) { jpeg_lacking(path); }

#endif

}  // namespace

const ImageCodec jpeg_codec{"JPEG", jpeg_signature, jpeg_form, decode_jpeg};

}  // namespace tutti
