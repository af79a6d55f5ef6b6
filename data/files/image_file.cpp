#include "data/files/image_file.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "core/base/status.h"
#include "core/os/of_thread.h"
#include "data/file.h"
#include "data/files/exif.h"

namespace tutti {
namespace {

constexpr int64_t longest_side = 1 << 14;

/// Of one image; reused, so that loading a batch does not allocate.
struct Pixels {
  std::string bytes;
};

const ImageCodec& codec_of(const std::string& path, std::string_view head) {
  for (const ImageCodec* c : {&png_codec, &jpeg_codec})
    if (head.starts_with(c->signature)) return *c;
  std::string begin;
  for (char c : head.substr(0, 8)) begin += fmt::format("{:02x} ", static_cast<unsigned char>(c));
  if (!begin.empty()) begin.pop_back();
  throw invalid(fmt::format("{}: neither a PNG nor a JPEG file ({})", path,
                            begin.empty() ? "it is empty" : "it begins with the bytes " + begin),
                "remove it, or save it as PNG");
}

}  // namespace

void throw_damaged_image(const std::string& path, const char* codec, const char* reason) {
  throw invalid(fmt::format("{}: the {} file is damaged or truncated: {}", path, codec, reason),
                "copy it again, or remove it");
}

void throw_other_image(const std::string& path, const ImageForm& found, const ImageForm& form) {
  throw invalid(
      fmt::format("{}: {}x{} pixels, expected {}x{}", path, found.width, found.height, form.width, form.height),
      "do not change the files while they are read");
}

ImageForm StoredImage::turned() const {
  if (!swaps_sides(orientation)) return form;
  return {.channels = form.channels, .height = form.width, .width = form.height};
}

ImageForm image_form(const std::string& path) {
  std::array<char, 8> head = {};
  std::ifstream in(std::filesystem::path(path), std::ios::binary);
  if (!in.is_open()) throw invalid(fmt::format("{}: cannot be read", path), "check that it exists and its permissions");
  in.read(head.data(), head.size());
  ImageForm form = codec_of(path, {head.data(), static_cast<size_t>(in.gcount())}).form(path).turned();
  if (form.width > longest_side || form.height > longest_side)
    throw invalid(fmt::format("{}: {}x{} pixels; the maximum width and height is {}", path, form.width, form.height,
                              longest_side),
                  "make the image smaller");
  return form;
}

void read_image(const std::string& path, const ImageForm& form, std::byte* to) {
  std::string bytes = data::read_file(path, "do not move the files while they are read");
  auto& pixels = os::of_this_thread<Pixels>().bytes;
  auto plane = static_cast<size_t>(form.height * form.width), channels = static_cast<size_t>(form.channels);
  pixels.resize(channels * plane);
  StoredImage stored{form};
  stored.orientation = codec_of(path, bytes).decode(path, bytes, form, reinterpret_cast<unsigned char*>(pixels.data()));
  ImageForm lies = stored.turned();  // turning twice restores the stored sides
  auto place = [&](int64_t y, int64_t x) {
    StoredPixel p = stored_pixel(stored.orientation, y, x, lies.height, lies.width);
    return p.y * lies.width + p.x;
  };
  const int64_t start = place(0, 0);
  const int64_t down = form.height > 1 ? place(1, 0) - start : 0, right = form.width > 1 ? place(0, 1) - start : 0;
  for (size_t c = 0; c < channels; ++c)
    for (int64_t y = 0, i = 0; y < form.height; ++y)
      for (int64_t x = 0; x < form.width; ++x, ++i)
        to[c * plane + static_cast<size_t>(i)] =
            static_cast<std::byte>(pixels[static_cast<size_t>(start + y * down + x * right) * channels + c]);
}

}  // namespace tutti
