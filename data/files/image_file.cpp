#include "data/files/image_file.h"

#include <fmt/format.h>

#include <array>
#include <fstream>

#include "core/base/status.h"
#include "data/file.h"

namespace tutti {
namespace {

constexpr int64_t longest_side = 1 << 14;

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
  throw invalid(fmt::format("{}: the {} is damaged or cut short: {}", path, codec, reason),
                "copy it again, or remove it");
}

void throw_other_image(const std::string& path, const ImageForm& found, const ImageForm& form) {
  throw invalid(
      fmt::format("{}: {}x{} pixels, expected {}x{}", path, found.width, found.height, form.width, form.height),
      "leave the files as they are while they are read");
}

ImageForm image_form(const std::string& path) {
  std::array<char, 8> head = {};
  std::ifstream in(path, std::ios::binary);
  if (!in.is_open()) throw invalid(fmt::format("{}: cannot be read", path), "check that it exists and its permissions");
  in.read(head.data(), head.size());
  ImageForm form = codec_of(path, {head.data(), static_cast<size_t>(in.gcount())}).form(path);
  if (form.width > longest_side || form.height > longest_side)
    throw invalid(
        fmt::format("{}: {}x{} pixels, at most {} a side are read", path, form.width, form.height, longest_side),
        "make it smaller");
  return form;
}

void read_image(const std::string& path, const ImageForm& form, std::byte* to) {
  std::string bytes = data::read_file(path, "leave the files where they are while they are read");
  thread_local std::string pixels;  // of one image; kept, so that no batch allocates
  auto plane = static_cast<size_t>(form.height * form.width), channels = static_cast<size_t>(form.channels);
  pixels.resize(channels * plane);
  codec_of(path, bytes).decode(path, bytes, form, reinterpret_cast<unsigned char*>(pixels.data()));
  for (size_t c = 0; c < channels; ++c)
    for (size_t i = 0; i < plane; ++i) to[c * plane + i] = static_cast<std::byte>(pixels[i * channels + c]);
}

}  // namespace tutti
