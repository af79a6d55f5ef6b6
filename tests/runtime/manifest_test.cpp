#include "core/runtime/manifest.h"

#include "tests/runtime/plugin_folder.h"

namespace tutti::test {
namespace {

const std::string good = R"({"tutti_manifest": 1, "name": "toy", "version": "1.2", "abi": [1, 3], "kind": "gpu",
  "priority": -5, "library": "sub/toy.so", "description": "A toy", "key_of_tomorrow": {}})";

std::string with(const std::string& from, const std::string& to) {
  std::string text = good;
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Manifest, EveryKeyIsRead) {
  Folder folder;
  Manifest m = read_manifest(folder.write("toy.json", good));
  EXPECT_EQ(m.path, folder / "toy.json");
  EXPECT_EQ(m.name, "toy");
  EXPECT_EQ(m.version, "1.2");
  EXPECT_EQ(m.abi_min, 1u);
  EXPECT_EQ(m.abi_max, 3u);
  EXPECT_EQ(m.kind, "gpu");
  EXPECT_EQ(m.priority, -5);
  EXPECT_EQ(m.library, folder / "sub/toy.so");
  EXPECT_EQ(m.description, "A toy");
}

TEST(Manifest, BadOnesNameFileKeyAndExpectation) {
  struct Case {
    std::string text, part;
  };
  const Case cases[] = {
      {"", "is not JSON"},
      {"{\"tutti_manifest\": 1,", "is not JSON: byte 2"},
      {"[1, 2]", "must be a JSON object, not array"},
      {with("\"tutti_manifest\": 1", "\"tutti_manifest\": 1e4000"), "is not JSON: a number is too large"},
      {"\xff\xfe{}", "is not JSON"},
      {std::string("{}\0{}", 5), "is not JSON: byte 3: a zero byte"},
      {std::string(5000, '['), "is not JSON"},
      {with("\"tutti_manifest\": 1, ", ""), "key \"tutti_manifest\" is missing"},
      {with("\"tutti_manifest\": 1", "\"tutti_manifest\": 2"), "manifest version 2; this engine reads version 1"},
      {with("\"name\": \"toy\", ", ""), "key \"name\" is missing"},
      {with("\"toy\"", "7"), "key \"name\" must be a string, not number"},
      {with("\"toy\"", "\"\""), "key \"name\" must have 1 to 32 characters"},
      {with("\"toy\"", "\"Toy:0\""), "it is \"Toy:0\""},
      {with("\"toy\"", "\"auto\""), "must not be auto or all"},
      {with("\"version\": \"1.2\", ", ""), "key \"version\" is missing"},
      {with("[1, 3]", "1"), "key \"abi\" must be [lowest, highest], not 1"},
      {with("[1, 3]", "[1]"), "key \"abi\" must be [lowest, highest], not array"},
      {with("[1, 3]", "[1, []]"), "key \"abi\" must be an integer from 1 to 1048576, not array"},
      {with("[1, 3]", std::string(30000, '[') + std::string(30000, ']')), "key \"abi\" must be [lowest, highest]"},
      {with("[1, 3]", "[3, 1]"), "key \"abi\" must be an integer from 3"},
      {with("[1, 3]", "[1, \"x\"]"), "not \"x\""},
      {with("[1, 3]", "[1, 18446744073709551615]"), "key \"abi\" must be an integer"},
      {with("\"gpu\"", "\"toaster\""), "cpu, gpu, software or other, not \"toaster\""},
      {with("-5", "1.5"), "key \"priority\" must be an integer from -1000 to 1000, not 1.5"},
      {with("-5", "100000"), "not 100000"},
      {with("sub/toy.so", "../toy.so"), "below the manifest's folder, not \"../toy.so\""},
      {with("sub/toy.so", "sub/../../toy.so"), "below the manifest's folder"},
      {with("sub/toy.so", "/lib/toy.so"), "below the manifest's folder"},
      {with("sub/toy.so", "a\\u0000b"), "key \"library\" must have"},
      {with("\"A toy\"", "[]"), "key \"description\" must be a string, not array"},
      {good + std::string(65536, ' '), "larger than 64 KiB"},
  };
  for (const Case& c : cases) {
    Folder folder;
    std::string error = error_of([&] { read_manifest(folder.write("toy.json", c.text)); });
    EXPECT_TRUE(has(error, c.part)) << c.text.substr(0, 300);
    EXPECT_LT(error.size(), 1000u) << c.text.substr(0, 300);
    EXPECT_TRUE(has(error, folder / "toy.json"));
  }
}

TEST(Manifest, AMissingFileOrAFolderIsAnError) {
  Folder folder;
  EXPECT_TRUE(has(error_of([&] { read_manifest(folder / "no.json"); }), "cannot be opened"));
  fs::create_directory(folder / "dir.json");
  EXPECT_TRUE(has(error_of([&] { read_manifest(folder / "dir.json"); }), "dir.json"));
}

}  // namespace
}  // namespace tutti::test
