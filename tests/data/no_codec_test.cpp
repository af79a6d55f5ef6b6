// A build without libpng or libjpeg names the library that is missing, and reads the files of the other one.
#include <filesystem>

#include "data/dataset.h"
#include "data/files/image_file.h"
#include "tests/train/files.h"

namespace tutti {
namespace {

using namespace tutti::test;

struct Kind {
  bool there;
  const char *image, *name, *library;
};
const Kind kinds[] = {{HAS_PNG, "rgb.png", "PNG", "libpng"}, {HAS_JPEG, "rgb.jpg", "JPEG", "libjpeg"}};

TEST(NoCodec, TheMissingLibraryIsNamed) {
  Folder folder;
  for (const Kind& k : kinds) {
    std::string path = std::string(GOLDEN_DIR) + "/images/" + k.image, root = folder / k.name;
    std::vector<std::byte> pixels(3 * 77);
    if (k.there) {
      EXPECT_EQ(image_form(path), (ImageForm{3, 7, 11}));
      EXPECT_NO_THROW(read_image(path, {3, 7, 11}, pixels.data()));
      continue;
    }
    std::vector<std::string> parts = {k.image, std::string("does not support ") + k.name + " files",
                                      std::string(k.library) + " was missing", std::string(k.library) + "-dev"};
    expect_parts(message_of([&] { image_form(path); }), parts);
    expect_parts(message_of([&] { read_image(path, {3, 7, 11}, pixels.data()); }), parts);
    std::filesystem::create_directories(root + "/class");
    for (const char* copy : {"1", "2"}) std::filesystem::copy_file(path, root + "/class/" + copy + k.image);
    expect_parts(message_of([&] { data::open_data("images:" + root, {}); }), parts);
  }
}

}  // namespace
}  // namespace tutti
