// PNG and JPEG files: Pillow's pixels, and files that lie or are cut short.
#include "data/files/image_file.h"

#include <algorithm>
#include <cstdlib>

#include "data/files/checkpoint.h"
#include "data/files/exif.h"
#include "tests/train/files.h"

namespace tutti {
namespace {

using namespace tutti::test;

std::string golden(const std::string& name) { return std::string(GOLDEN_DIR) + "/images/" + name; }

int difference(const HostTensor& a, const std::vector<std::byte>& b) {
  int most = 0;
  for (size_t i = 0; i < b.size(); ++i)
    most = std::max(most, std::abs(std::to_integer<int>(a.bytes[i]) - std::to_integer<int>(b[i])));
  return most;
}

TEST(ImageFile, PillowsPixels) {
  HostTensors want = read_checkpoint(golden("pixels.safetensors")).tensors;
  ASSERT_EQ(want.size(), 10u);
  for (const auto& [name, t] : want) {
    ImageForm form = image_form(golden(name));
    EXPECT_EQ(form, (ImageForm{t.type.shape[0], 7, 11})) << name;
    std::vector<std::byte> pixels(t.bytes.size());
    read_image(golden(name), form, pixels.data());
    // Two versions of libjpeg may round a colour differently.
    EXPECT_LE(difference(t, pixels), name.ends_with(".jpg") ? 2 : 0) << name;
  }
}

// Cameras store what the sensor reads and say how it was held.
TEST(ImageFile, TurnedAsExifAsks) {
  HostTensors want = read_checkpoint(golden("turned.safetensors")).tensors;
  ASSERT_EQ(want.size(), 16u);
  for (const auto& [name, t] : want) {
    ImageForm form = image_form(golden("turned/" + name));
    EXPECT_EQ(form, (ImageForm{3, t.type.shape[1], t.type.shape[2]})) << name;
    std::vector<std::byte> pixels(t.bytes.size());
    read_image(golden("turned/" + name), form, pixels.data());
    EXPECT_LE(difference(t, pixels), name.ends_with(".jpg") ? 2 : 0) << name;
  }
  std::vector<std::byte> pixels(3 * 77);
  expect_parts(message_of([&] {
                 read_image(golden("turned/6.jpg"), {3, 7, 11}, pixels.data());
               }),
               {"7x11 pixels, expected 11x7"});
}

TEST(ImageFile, OrientationOfAnyBytes) {
  auto entry = [](const std::string& tag, const std::string& type, const std::string& value) {
    return tag + type + std::string("\0\0\0\1", 4) + value;
  };
  const std::string head("MM\0*\0\0\0\x08\0\1", 10), tag("\x01\x12", 2), s16("\0\3", 2), six("\0\6\0\0", 4);
  EXPECT_EQ(exif_orientation(head + entry(tag, s16, six)), 6);
  EXPECT_EQ(exif_orientation(std::string("Exif\0\0", 6) + head + entry(tag, s16, six)), 6);
  EXPECT_EQ(exif_orientation(head + entry(tag, std::string("\0\4", 2), std::string("\0\0\0\x08", 4))), 8);
  EXPECT_EQ(exif_orientation(head + entry(tag, std::string("\0\2", 2), six)), 1) << "a text";
  EXPECT_EQ(exif_orientation(head + entry(tag, s16, std::string("\0\x09\0\0", 4))), 1);
  EXPECT_EQ(exif_orientation(head + entry(tag, s16, std::string(4, '\0'))), 1);
  EXPECT_EQ(exif_orientation(std::string("MM\0*\xff\xff\xff\xff", 8)), 1);
  std::string good = get(golden("turned/6.jpg")).substr(20, 100), little = get(golden("turned/7.png")).substr(41, 90);
  ASSERT_EQ(exif_orientation(good.substr(good.find("Exif"))), 6);
  ASSERT_EQ(exif_orientation(little.substr(little.find("II*"))), 7);
  for (const std::string& whole : {good.substr(good.find("Exif")), little.substr(little.find("II*"))})
    for (size_t n = 0; n < whole.size(); ++n) {
      int cut = exif_orientation(whole.substr(0, n));
      EXPECT_TRUE(cut >= 1 && cut <= 8);
      for (int bit = 0; bit < 8; ++bit) {
        std::string other = whole;
        other[n] = static_cast<char>(other[n] ^ 1 << bit);
        int changed = exif_orientation(other);
        EXPECT_TRUE(changed >= 1 && changed <= 8);
      }
    }
}

TEST(ImageFile, GreyBecomesRgbWhereTheOthersAre) {
  for (const char* name : {"grey.png", "bits.png", "grey.jpg", "grey_alpha.png", "grey16.png"}) {
    std::vector<std::byte> one(77), three(3 * 77);
    read_image(golden(name), {1, 7, 11}, one.data());
    read_image(golden(name), {3, 7, 11}, three.data());
    for (size_t i = 0; i < three.size(); ++i) EXPECT_EQ(three[i], one[i % 77]) << name;
  }
}

TEST(ImageFile, EveryCutIsNoticed) {
  Folder f;
  std::string path = f / "x";
  std::vector<std::byte> pixels(3 * 77);
  for (const char* name : {"rgb.png", "rgb.jpg", "progressive.jpg", "turned/6.jpg"}) {
    std::string whole = get(golden(name));
    ImageForm form = image_form(golden(name));
    // What is missing of a JPEG's end marker alone changes no pixel.
    size_t enough = std::string(name).ends_with(".png") ? whole.size() : whole.size() - 2;
    for (size_t n = 0; n < enough; n += 1 + whole.size() / 60) {
      put(path, whole.substr(0, n));
      std::string said = message_of([&] {
        image_form(path);
        read_image(path, form, pixels.data());
      });
      EXPECT_TRUE(said.starts_with(path + ": ")) << said;
      EXPECT_NE(said.find(n < 8 ? "neither a PNG nor a JPEG" : "damaged or truncated"), said.npos) << name << n << said;
    }
  }
}

TEST(ImageFile, NoChangedByteCrashes) {
  Folder f;
  std::string path = f / "x";
  std::vector<std::byte> pixels(3 * 77);
  size_t noticed = 0, all = 0;
  for (const char* name : {"rgb.png", "palette.png", "rgb.jpg", "progressive.jpg", "turned/6.jpg", "turned/7.png"}) {
    std::string whole = get(golden(name));
    for (size_t n = 0; n < whole.size(); n += 3, ++all) {
      std::string other = whole;
      other[n] = static_cast<char>(~other[n]);
      put(path, other);
      try {
        ImageForm form = image_form(path);
        if (form.height * form.width * form.channels <= 3 * 77) read_image(path, form, pixels.data());
      } catch (const Error& e) {
        EXPECT_EQ(e.code, Code::invalid);
        ++noticed;
      }
    }
  }
  EXPECT_GT(noticed, all / 4);
}

TEST(ImageFile, SaysWhatIsNoImageOfThatForm) {
  Folder f;
  std::vector<std::byte> pixels(3 * 77);
  expect_parts(message_of([&] { image_form(f.write("a.png", "GIF89a and more")); }),
               {f / "a.png", "neither a PNG nor a JPEG", "47 49 46 38", "remove it"});
  expect_parts(message_of([&] { image_form(f.write("b.png", "")); }), {f / "b.png", "it is empty"});
  expect_parts(message_of([&] { image_form(f / "none.png"); }), {f / "none.png", "cannot be read"});
  expect_parts(message_of([&] { image_form(golden("cmyk.jpeg")); }),
               {golden("cmyk.jpeg"), "CMYK", "expected grey or RGB", "save it as RGB"});
  for (const char* name : {"rgb.png", "rgb.jpg"})
    expect_parts(message_of([&] {
                   read_image(golden(name), {3, 7, 10}, pixels.data());
                 }),
                 {golden(name), "11x7 pixels, expected 10x7"});
}

}  // namespace
}  // namespace tutti
