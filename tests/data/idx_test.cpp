#include "data/idx.h"

#include <cstring>

#include "tests/data/idx_files.h"

namespace tutti::data {
namespace {

using namespace tutti::test;

std::string error_of(const std::string& path) {
  return message_of([&] { read_idx(path); });
}

TEST(Idx, ReadsPlainAndPacked) {
  Folder f;
  std::string bytes = idx(8, {2, 3}, "abcdef");
  put(f / "plain", bytes);
  put_gz(f / "packed", bytes);  // told by its content, not by its name
  for (const char* name : {"plain", "packed"}) {
    HostTensor t = read_idx(f / name);
    EXPECT_EQ(to_string(t.type), "u8[2, 3]");
    EXPECT_EQ(std::memcmp(t.bytes.data(), "abcdef", 6), 0) << name;
  }
}

TEST(Idx, TurnsBigEndianElements) {
  Folder f;
  put(f / "i32", idx(0x0C, {2}, std::string("\x00\x00\x01\x02\xff\xff\xff\xfe", 8)));
  put(f / "f32", idx(0x0D, {1}, std::string("\x3f\x80\x00\x00", 4)));
  put(f / "f64", idx(0x0E, {1}, std::string("\xc0\x00\x00\x00\x00\x00\x00\x00", 8)));
  EXPECT_EQ(read_idx(f / "i32"), host_tensor<int32_t>(DType::i32, {2}, {258, -2}));
  EXPECT_EQ(read_idx(f / "f32"), host_tensor<float>(DType::f32, {1}, {1.0f}));
  EXPECT_EQ(read_idx(f / "f64"), host_tensor<double>(DType::f64, {1}, {-2.0}));
}

TEST(Idx, EmptyDimensionReads) {
  Folder f;
  put(f / "none", idx(8, {0, 28, 28}, ""));
  EXPECT_TRUE(read_idx(f / "none").bytes.empty());
}

TEST(Idx, MissingFileAndFolder) {
  Folder f;
  expect_parts(error_of(f / "nothing"), {f / "nothing", "no such file"});
  expect_parts(error_of(f.path()), {f.path(), "a folder, expected a file"});
}

TEST(Idx, NamesFileByteAndExpectation) {
  Folder f;
  std::string good = idx(8, {2, 3}, "abcdef");
  struct Case {
    const char* name;
    std::string bytes;
    std::vector<std::string> parts;
  };
  const Case cases[] = {
      {"empty", "", {"byte 0", "magic number"}},
      {"short-magic", good.substr(0, 3), {"byte 3", "magic number"}},
      {"magic", "PK\3\4" + good, {"byte 0", "0x504b0304"}},
      {"type", idx(0x07, {1}, "a"), {"byte 2", "0x07", "0x08 (u8)"}},
      {"rank0", idx(8, {}, ""), {"byte 3", "rank 0"}},
      {"rank9", idx(8, std::vector<uint32_t>(9, 1), "a"), {"byte 3", "rank 9"}},
      {"short-dims", good.substr(0, 9), {"byte 9", "2 dimensions"}},
      {"short-data", good.substr(0, 15), {"byte 15", "ends here", "[2, 3]", "should have 18 bytes"}},
      {"long-data", good + "x", {"byte 18", "more data"}},
      {"overflow", idx(8, std::vector<uint32_t>(8, 0xffffffffu), ""), {"byte 4", "2^62"}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    put(f / c.name, c.bytes);
    std::string text = error_of(f / c.name);
    expect_parts(text, {f / c.name});
    expect_parts(text, c.parts);
  }
}

// A header that promises terabytes is refused before memory is taken, however small the file.
TEST(Idx, RefusesLyingHeaderEarly) {
  Folder f;
  std::string bytes = idx(8, {0x7fffffff, 1024, 1}, "abc");
  put(f / "plain", bytes);
  put_gz(f / "packed", bytes);
  expect_parts(error_of(f / "plain"), {"byte 19", "ends here", "should have 2199023254544 bytes"});
  expect_parts(error_of(f / "packed"), {"cannot decompress to so many bytes", "should have 2199023254544 bytes"});
}

TEST(Idx, PackedFileEndsEarly) {
  Folder f;
  put_gz(f / "short", idx(8, {2, 3}, "abcde"));
  expect_parts(error_of(f / "short"), {"byte 17", "ends here", "should have 18 bytes"});
}

TEST(Idx, DamagedGzip) {
  Folder f;
  std::string noise;
  for (uint32_t i = 0; i < 4000; ++i) noise += static_cast<char>(i * 2654435761u >> 24);
  put_gz(f / "good", idx(8, {4000}, noise));
  std::string packed = get(f / "good");
  EXPECT_EQ(read_idx(f / "good").bytes.size(), 4000u);

  put(f / "cut", packed.substr(0, packed.size() / 2));
  expect_parts(error_of(f / "cut"), {f / "cut", "ends too early"});
  put(f / "cut-tail", packed.substr(0, packed.size() - 4));  // the length and a part of the checksum
  expect_parts(error_of(f / "cut-tail"), {"ends too early"});
  std::string bent = packed;
  bent[bent.size() - 6] = static_cast<char>(bent[bent.size() - 6] ^ 1);  // the checksum
  put(f / "checksum", bent);
  expect_parts(error_of(f / "checksum"), {"bad gzip data"});
}

// Whatever byte is damaged, the answer is a tensor or an Error.
TEST(Idx, EveryDamagedByteIsSurvived) {
  Folder f;
  std::string good = idx(8, {3, 2}, "abcdef");
  put_gz(f / "packed", good);
  for (const std::string& bytes : {good, get(f / "packed")})
    for (size_t i = 0; i < bytes.size(); ++i)
      for (int flip : {0x01, 0x80, 0xff}) {
        std::string bent = bytes;
        bent[i] = static_cast<char>(bent[i] ^ flip);
        put(f / "bent", bent);
        try {
          HostTensor t = read_idx(f / "bent");
          EXPECT_EQ(t.bytes.size(), num_bytes(t.type));
        } catch (const Error& e) {
          expect_parts(e.what(), {f / "bent"});
        }
      }
}

}  // namespace
}  // namespace tutti::data
