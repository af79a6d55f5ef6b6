// Folders of images: which files are which samples, and what is wrong with a folder.
#include <fmt/format.h>

#include <filesystem>

#include "data/files/image_file.h"
#include "tests/data/columns.h"
#include "tests/train/files.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;
using namespace tutti::test;

std::string golden(const std::string& name) { return std::string(GOLDEN_DIR) + "/images/" + name; }

struct Images : testing::Test {
  Folder folder;
  std::string root = folder / "set";
  void add(const std::string& file, const std::string& image = "rgb.png") const {
    fs::create_directories(fs::path(root) / fs::path(file).parent_path());
    fs::copy_file(golden(image), fs::path(root) / file);
  }
  Sources open(const std::string& vocabulary = "") const {
    return open_data("images:" + root, {.vocabulary = vocabulary});
  }
  std::string error(const std::string& vocabulary = "") const {
    return message_of([&] { open(vocabulary); });
  }
  /// Two classes, both halves.
  void usual() const {
    for (const char* file : {"train/cat/1.png", "train/cat/2.jpg", "train/ant/9.png", "test/cat/5.png"}) add(file);
  }
};

TEST_F(Images, ClassesAndFilesInTheOrderOfTheirNames) {
  usual();
  add("train/.hidden", "rgb.png");
  add("train/ant/.hidden", "rgb.png");
  add("readme.txt");
  Sources s = open();
  EXPECT_EQ(s.train->name, "set/train");
  EXPECT_EQ(all_of<int32_t>(*s.train, "label"), (std::vector<int32_t>{0, 1, 1}));
  EXPECT_EQ(all_of<int32_t>(*s.test, "label"), (std::vector<int32_t>{1}));
  EXPECT_EQ(s.train->column("label").classes, 2);
  EXPECT_EQ(to_string(s.train->column("input").type), "u8[3, 7, 11]");
  EXPECT_EQ(s.train->vocabulary, R"({"classes":["ant","cat"],"image":[3,7,11]})");
  EXPECT_TRUE(s.train->parallel());
  s.train->check();
  s.test->check();
}

TEST_F(Images, SamplesAreThePixelsOfTheirFiles) {
  for (const char* file : {"rgb.png", "rgb.jpg", "grey.png", "palette.png"}) add(std::string("a/") + file, file);
  add("b/grey.jpg", "grey.jpg");
  Sources s = open();
  EXPECT_EQ(s.train->size() + s.test->size(), 5);
  // The test is the last of the shuffled order; grey among RGB becomes RGB.
  std::vector<std::string> files = {"grey.png", "palette.png", "rgb.jpg", "rgb.png", "grey.jpg"};
  std::vector<int32_t> order = shuffled_order(5, 0, 0);
  for (int32_t i = 0; i < 5; ++i) {
    const Source& half = i < 4 ? *s.train : *s.test;
    std::vector<std::byte> want(3 * 77);
    read_image(golden(files[static_cast<size_t>(order[static_cast<size_t>(i)])]), {3, 7, 11}, want.data());
    EXPECT_EQ(read_samples(half, "input", std::array{i % 4}).bytes, want) << i;
    EXPECT_EQ(read_samples(half, "label", std::array{i % 4}).as<int32_t>()[0], order[static_cast<size_t>(i)] / 4);
  }
}

TEST_F(Images, GreyFilesAloneStayGrey) {
  for (const char* file : {"grey.png", "grey.jpg", "bits.png", "grey16.png"}) add(std::string("a/") + file, file);
  EXPECT_EQ(to_string(open().train->column("input").type), "u8[1, 7, 11]");
}

TEST_F(Images, AnotherFolderGetsTheNumbersThatAModelWasTrainedOn) {
  usual();
  Sources s = open("[\"ant\",\"bee\",\"cat\"]");
  EXPECT_EQ(all_of<int32_t>(*s.train, "label"), (std::vector<int32_t>{0, 2, 2}));
  EXPECT_EQ(s.train->column("label").classes, 3);
  expect_parts(error("[\"ant\",\"cats\"]"),
               {root + "/train/cat", "class 'cat' is not one of the 2", "did you mean 'cats'"});
  for (const char* damaged : {"abc", "{}", "[]", "[1]"})
    expect_parts(error(damaged), {"not trained on a folder of images", "use the data"});
}

TEST_F(Images, ValidationFoldersAreTheTest) {
  for (const char* file : {"train/cat/1.png", "train/ant/9.png", "val/cat/5.png"}) add(file);
  Sources s = open();
  EXPECT_EQ(s.train->size(), 2);
  EXPECT_EQ(all_of<int32_t>(*s.test, "label"), (std::vector<int32_t>{1}));
  expect_parts(message_of([&] { open_data("images:" + root, {.test_fraction = 0.5}); }),
               {"test-fraction", "of its own"});
}

TEST_F(Images, ImagesWithoutAClassAreForPredictions) {
  for (const char* file : {"2.png", "1.png", "3.png"}) add(file);
  fs::copy_file(golden("grey.png"), fs::path(root) / "4.png");
  const std::string known = R"({"classes":["ant","cat"],"image":[3,7,11]})";
  auto read = [&](const std::string& path, const std::string& vocabulary) {
    return open_data("images:" + path, {.vocabulary = vocabulary, .whole = true, .labelled = false}).test;
  };
  auto s = read(root, known);
  EXPECT_EQ(s->size(), 4);
  EXPECT_EQ(s->sample_name(0), root + "/1.png");
  EXPECT_EQ(s->column("label").classes, 2);
  auto one = read(root + "/4.png", known);  // grey, for a model of RGB images
  EXPECT_EQ(one->size(), 1);
  EXPECT_EQ(one->column("input").type.shape, (Shape{3, 7, 11}));
  expect_parts(message_of([&] { open_data("images:" + root + "/4.png", {.vocabulary = known}); }), {"not a folder"});
  auto error = [&](const char* image) {
    return message_of([&] { read(root, fmt::format(R"({{"classes":["a","b"],"image":{}}})", image)); });
  };
  expect_parts(error("[3,8,11]"), {"1.png", "11x7 pixels", "trained on 11x8"});
  expect_parts(error("[1,7,11]"), {"1.png", "grey"});
  expect_parts(error("[1,7]"), {"no valid size", "damaged"});
}

TEST_F(Images, SaysWhatIsWrongWithAFolder) {
  expect_parts(error(), {root, "no such folder", "images:DIR"});
  fs::create_directory(root);
  expect_parts(error(), {root, "no subfolders", "DIR/CLASS"});
  fs::create_directory(root + "/a");
  expect_parts(error(), {root + "/a", "class folder is empty", "or remove the folder"});
  add("a/1.png");
  expect_parts(error(), {root, "only one image"});
  add("a/2.png");
  put(root + "/a/notes.txt", "my notes");
  expect_parts(error(), {root + "/a/notes.txt", "neither a PNG nor a JPEG", "6d 79 20", "remove it"});
  fs::remove(root + "/a/notes.txt");
  fs::create_directory(root + "/a/more");
  expect_parts(error(), {root + "/a/more", "a folder, expected images of the class 'a'"});
  fs::remove(root + "/a/more");
  std::string png = get(golden("rgb.png"));
  png[19] = 12;  // the width
  put(root + "/a/3.png", png);
  std::string said = error();
  expect_parts(said, {"different sizes", "11x7 pixels", "12x7", "a/3.png", "mogrify -resize"});
  fs::remove(root + "/a/3.png");
  open();
}

TEST_F(Images, SaysWhatIsWrongWithHalves) {
  add("train/a/1.png");
  expect_parts(error(), {root, "contains only 'train'", root + "/test", "give " + root + "/train itself"});
  add("test/b/1.png");
  expect_parts(error(), {root + "/test/b", "class 'b' is not one of the 1"});
}

TEST_F(Images, ADamagedFileIsNamedWhenItIsRead) {
  usual();
  std::string whole = get(golden("rgb.png"));
  put(root + "/train/cat/1.png", whole.substr(0, whole.size() - 20));
  Sources s = open();
  expect_parts(message_of([&] { all_of<uint8_t>(*s.train, "input"); }),
               {root + "/train/cat/1.png", "the PNG file is damaged or truncated", "copy it again"});
}

}  // namespace
}  // namespace tutti::data
