// GGUF files: what the package `gguf` writes and makes of it, and every way in which a file can be wrong.
#include "data/files/gguf.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "data/files/checkpoint.h"
#include "tests/data/gguf_bytes.h"
#include "tests/train/files.h"

namespace tutti {
namespace {

using namespace tutti::test;

const std::string golden = std::string(GOLDEN_DIR) + "/gguf";

std::string error_of(const std::string& bytes) {
  Folder f;
  std::string path = f.write("file.gguf", bytes);
  std::string message = message_of([&] { Gguf g(path); });
  EXPECT_NE(message.find(path), std::string::npos) << message;
  EXPECT_FALSE(message.ends_with(" | ")) << "no remedy: " << message;
  return message;
}

// Bits, so that -0 and NaN count.
std::vector<uint32_t> bits(const HostTensor& t) { return t.as<uint32_t>(); }

TEST(Gguf, FloatsAreThoseOfTheGgufPackage) {
  Gguf g(golden + "/types.gguf");
  Checkpoint expected = read_checkpoint(golden + "/types.safetensors");
  ASSERT_EQ(expected.tensors.size(), 16u);
  EXPECT_EQ(g.tensors().size(), 17u);
  for (const auto& [name, t] : expected.tensors) {
    const GgufTensor* found = g.find_tensor(name);
    ASSERT_TRUE(found) << name;
    HostTensor read = g.read(*found);
    EXPECT_EQ(read.type, t.type) << name;
    EXPECT_EQ(bits(read), bits(t)) << name;
  }
  EXPECT_STREQ(g.find_tensor("q4_1")->type->name, "q4_1");
  EXPECT_EQ(g.find_tensor("q4_1")->shape, (Shape{3, 96}));
  EXPECT_EQ(g.find_tensor("q4_1")->bytes, 3 * 3 * 20u);
  EXPECT_EQ(g.find_tensor("nothing"), nullptr);
  expect_parts(
      message_of([&] { g.read(*g.find_tensor("listed_only")); }),
      {"types.gguf, byte ", "'listed_only' has the unsupported type iq2_xxs",
       "f32, f16, q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, iq4_xs, bf16", "convert"});
}

/// The bytes of the generator splitmix64, as make_gguf.py makes them.
std::vector<std::byte> splitmix(uint64_t seed, size_t count) {
  std::vector<std::byte> all((count + 7) / 8 * 8);
  for (size_t i = 0; i < all.size(); i += 8) {
    uint64_t z = seed += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    z ^= z >> 31;
    std::memcpy(&all[i], &z, sizeof z);
  }
  return all;
}

TEST(Gguf, RandomBlocksAreThoseOfTheGgufPackage) {
  auto sums = nlohmann::json::parse(get(golden + "/blocks.json"));
  for (const GgufType& type : all_gguf_types()) {
    if (!type.take_apart) continue;
    SCOPED_TRACE(type.name);
    ASSERT_TRUE(sums.contains(type.name));
    const auto& expected = sums[type.name];
    auto count = expected["blocks"].get<size_t>();
    std::vector<float> x(count * type.block);
    type.read(splitmix(type.number, count * type.bytes).data(), count, x.data());
    uint64_t sum = 0, nans = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      uint32_t bits = 0;
      std::memcpy(&bits, &x[i], sizeof bits);
      if (std::isnan(x[i])) {
        ++nans;
        bits = 0x7fc00000;
      }
      sum += bits * (2 * i + 1);
    }
    EXPECT_EQ(nans, expected["nans"].get<uint64_t>());
    EXPECT_EQ(std::to_string(sum), expected["sum"].get<std::string>());
    sums.erase(type.name);
  }
  EXPECT_TRUE(sums.empty()) << sums;
}

TEST(Gguf, MetadataOfEveryType) {
  Gguf g(golden + "/types.gguf");
  EXPECT_EQ(g.version(), 3u);
  auto value = [&](const char* key) { return *g.find(std::string("m.") + key); };
  EXPECT_EQ(value("u8").integer(), 255);
  EXPECT_EQ(value("i8").integer(), -128);
  EXPECT_EQ(value("u16").integer(), 65535);
  EXPECT_EQ(value("i16").integer(), -32768);
  EXPECT_EQ(value("u32").integer(), 4294967295);
  EXPECT_EQ(value("i32").integer(), -2147483648LL);
  EXPECT_EQ(value("u64").integer(), std::nullopt) << "beyond i64";
  EXPECT_EQ(value("u64").real(), std::ldexp(1.0, 64));
  EXPECT_EQ(value("i64").integer(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(value("f32").real(), 0.1f);
  EXPECT_EQ(value("f64").real(), 0.1);
  EXPECT_EQ(value("f64").integer(), std::nullopt);
  EXPECT_EQ(value("yes").boolean(), true);
  EXPECT_EQ(value("no").boolean(), false);
  EXPECT_EQ(value("no").integer(), std::nullopt);
  EXPECT_EQ(value("text").text(),
            "gr\xc3\xb6\xc3\x9f"
            "er\n");
  GgufValue texts = value("texts");
  EXPECT_EQ(texts.type_name(), "text[3]");
  EXPECT_EQ(texts.text(0), "");
  EXPECT_EQ(texts.text(1), "a");
  EXPECT_EQ(texts.text(2)->size(), 8u);
  EXPECT_EQ(value("numbers").integer(1), -2);
  EXPECT_EQ(value("reals").real(1), -1.5);
  EXPECT_EQ(value("flags").boolean(1), false);
  EXPECT_EQ(value("bytes").type_name(), "u8[3]");
  EXPECT_EQ(value("bytes").integer(2), 255);
  std::string file = get(golden + "/types.gguf");
  EXPECT_EQ(file.substr(texts.byte_of(2), 16), u64(8) + std::string(*texts.text(2)));
}

TEST(Gguf, AskingForWhatIsNotThere) {
  Gguf g(golden + "/types.gguf");
  EXPECT_EQ(g.integer("m.i8"), -128);
  EXPECT_EQ(g.integer("m.none", 5), 5);
  EXPECT_EQ(g.real("m.i8"), -128);
  EXPECT_EQ(g.text("m.none", "x"), "x");
  EXPECT_TRUE(g.boolean("m.yes", false));
  expect_parts(message_of([&] { g.integer("m.none"); }), {"types.gguf: metadata 'm.none' is missing", "an integer"});
  expect_parts(message_of([&] { g.integer("m.text", 5); }), {"types.gguf, byte ", "'m.text' is text", "an integer"});
  expect_parts(message_of([&] { g.integer("m.numbers"); }), {"'m.numbers' is i32[3]"});
  expect_parts(message_of([&] { g.text("m.u8"); }), {"'m.u8' is u8", "a string"});
  expect_parts(message_of([&] { g.texts("m.text"); }), {"'m.text' is text", "an array of strings"});
  expect_parts(message_of([&] { g.texts("m.numbers"); }), {"'m.numbers' is i32[3]", "an array of strings"});
  expect_parts(message_of([&] { g.integers("m.reals"); }), {"'m.reals' is f32[2]", "an array of integers"});
}

const std::string two_tensors =
    gguf_file({metadatum("k", gguf_u32, u32(7)), texts("t", {"a", "bc"}), numbers("n", {1, 2})},
              {tensor_info("a", {4, 2}, 0, 0), tensor_info("b", {32}, 8, 32)},
              std::string(32, '\0') + std::string("\x00\x3c", 2) + std::string(32, '\x02'));

TEST(Gguf, AFileByteByByte) {
  Folder f;
  Gguf g(f.write("a", two_tensors));
  EXPECT_EQ(g.integer("k"), 7);
  EXPECT_EQ(g.find_tensor("a")->shape, (Shape{2, 4}));
  EXPECT_EQ(g.read(*g.find_tensor("b")), host_tensor(std::vector<float>(32, 2)));
  std::string second = two_tensors;
  second[4] = 2;
  EXPECT_EQ(Gguf(f.write("b", second)).version(), 2u);
  EXPECT_TRUE(Gguf(f.write("c", gguf_file({}))).tensors().empty());
  EXPECT_EQ(Gguf(f.write("d", gguf_file({}, {tensor_info("x", {}, 0, 0), tensor_info("y", {0, 3}, 0, 32)},
                                        std::string(32, '\0'))))
                .tensors()[0]
                .bytes,
            4u);
  // Gaps and another alignment.
  Gguf wide(f.write("e", gguf_file({metadatum("general.alignment", gguf_u32, u32(8))},
                                   {tensor_info("x", {1}, 0, 16), tensor_info("y", {1}, 0, 0)},
                                   std::string("\0\0\x80\x3f\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x40", 20), 8)));
  EXPECT_EQ(wide.read(*wide.find_tensor("x")), host_tensor({2}));
  EXPECT_EQ(wide.read(*wide.find_tensor("y")), host_tensor({1}));
}

TEST(Gguf, CutAtEveryByte) {
  for (size_t keep = 0; keep < two_tensors.size(); ++keep) {
    std::string message = error_of(two_tensors.substr(0, keep));
    expect_parts(message, {"file.gguf, byte "});
    if (HasFailure()) FAIL() << "cut at " << keep;
  }
}

TEST(Gguf, AnyDamagedByteIsSurvived) {
  Folder f;
  for (size_t at = 0; at < two_tensors.size(); ++at)
    for (int flip : {0x01, 0x80, 0xff}) {
      std::string bytes = two_tensors;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      std::string path = f.write("a", bytes);
      try {
        Gguf g(path);
        for (const GgufTensor& t : g.tensors()) g.read(t);
      } catch (const Error& e) {
        EXPECT_EQ(e.code, Code::invalid) << at;
        EXPECT_NE(std::string(e.what()).find(path), std::string::npos) << e.what();
      }
    }
}

TEST(Gguf, NamesFileByteAndExpectation) {
  const uint64_t huge = uint64_t{1} << 63, all = UINT64_MAX;
  auto head = [](uint64_t tensors, uint64_t metadata) { return "GGUF" + u32(3) + u64(tensors) + u64(metadata); };
  auto key = [&](const std::string& rest) { return head(0, 1) + rest; };
  auto one = [](const std::string& info, size_t bytes = 64) { return gguf_file({}, {info}, std::string(bytes, '\0')); };
  auto alignment = [](uint32_t type, const std::string& n) {
    return gguf_file({metadatum("general.alignment", type, n)}, {tensor_info("a", {1}, 0, 0)}, "1234");
  };
  struct Case {
    const char* name;
    std::string bytes;
    std::vector<std::string> parts;
  };
  const Case cases[] = {
      {"empty", "", {"byte 0", "4 bytes", "only 0 are left"}},
      {"magic", "GGML" + std::string(30, '\0'), {"byte 0", "does not begin with \"GGUF\""}},
      {"version", "GGUF" + u32(1) + std::string(16, '\0'), {"byte 4", "version 1, expected 2 or 3"}},
      {"version-4", "GGUF" + u32(4) + std::string(16, '\0'), {"byte 4", "version 4"}},
      {"big-endian", "GGUF" + u32(0x03000000) + std::string(16, '\0'), {"byte 4", "big-endian", "convert"}},
      {"tensors",
       head(huge, 0),
       {"byte 8", "9223372036854775808 tensors", "at least 24 bytes each", "only 8 bytes are left"}},
      {"metadata",
       head(0, all),
       {"byte 16", "18446744073709551615 metadata", "13 bytes each", "only 0 bytes are left"}},
      {"key-length", key(u64(all) + "abcdefgh"), {"byte 24", "key of metadata 0", "18446744073709551615 bytes"}},
      {"key-empty", key(u64(0) + u32(0) + "12345"), {"byte 24", "printable ASCII"}},
      {"key-no-ascii", key(gguf_text("a\xff") + u32(0) + "1"), {"byte 24", "'a\\xff'", "printable ASCII"}},
      {"key-long", key(gguf_text(std::string(65536, 'a')) + u32(0) + "1"), {"byte 24", "65536", "at most 65535"}},
      {"type", key(gguf_text("k") + u32(13) + u64(0)), {"byte 33", "'k': type 13, expected 0 to 12"}},
      {"bool", key(metadatum("k", gguf_bool, "\x02")), {"byte 37", "'k': invalid bool value 2", "0 or 1"}},
      {"text",
       key(metadatum("k", gguf_string, u64(huge))),
       {"byte 37", "'k'", "9223372036854775808 bytes", "only 0 are left"}},
      {"array-type", key(metadatum("k", gguf_array, u32(99) + u64(0))), {"byte 37", "type 99"}},
      {"array-length",
       key(metadatum("k", gguf_array, u32(gguf_u32) + u64(huge))),
       {"byte 41", "9223372036854775808 elements of at least 4 bytes"}},
      {"array-of-texts",
       key(metadatum("k", gguf_array, u32(gguf_string) + u64(2) + u64(0))),
       {"byte 41", "2 elements of at least 8 bytes, but only 8 bytes are left"}},
      {"array-text",
       key(metadatum("k", gguf_array, u32(gguf_string) + u64(1) + u64(9) + "12345678")),
       {"byte 49", "should have 9 bytes, but only 8 are left"}},
      {"array-of-arrays",
       key(metadatum("k", gguf_array, u32(gguf_array) + u64(1) + u32(0) + u64(0))),
       {"byte 37", "array of arrays"}},
      {"twice",
       gguf_file({metadatum("k", gguf_u8, "1"), metadatum("k", gguf_u8, "1")}),
       {"byte 38", "'k' occurs twice"}},
      {"alignment-0", alignment(gguf_u32, u32(0)), {"'general.alignment' is u32 0", "multiple of 8"}},
      {"alignment-12", alignment(gguf_u32, u32(12)), {"'general.alignment' is u32 12"}},
      {"alignment-type", alignment(gguf_i32, u32(32)), {"'general.alignment' is i32 32"}},
      {"alignment-huge", alignment(gguf_u32, u32(0xfffffff8)), {"tensor 'a' occupies bytes 4294967288"}},
      {"no-name", one(tensor_info("", {1}, 0, 0)), {"byte 24", "tensor 0 has no name"}},
      {"long-name", one(tensor_info(std::string(65, 'a'), {1}, 0, 0)), {"byte 24", "65 bytes, expected at most 64"}},
      {"rank", one(tensor_info("a", {1, 1, 1, 1, 1}, 0, 0)), {"byte 33", "5 dimensions, expected at most 4"}},
      {"rank-huge", head(1, 0) + gguf_text("a") + u32(0xffffffff) + u64(0) + u64(0), {"4294967295 dimensions"}},
      {"dimension", one(tensor_info("a", {huge}, 0, 0)), {"byte 37", "dimension 0 is 9223372036854775808"}},
      {"product", one(tensor_info("a", {1u << 31, 1u << 31, 2}, 0, 0)), {"byte 53", "dimension 2 is 2", "2^62"}},
      {"product-0", one(tensor_info("a", {0, 1u << 31, 1u << 31, 2}, 0, 0)), {"dimension 3 is 2", "2^62"}},
      {"unknown-type",
       one(tensor_info("a", {1}, 4, 0)),
       {"byte 45", "'a': unknown type 4", "f32, f16, q4_0", "convert"}},
      {"block", one(tensor_info("a", {33, 32}, 2, 0)), {"byte 53", "'a' is q4_0 [32, 33]", "must be a multiple of 32"}},
      {"offset", one(tensor_info("a", {1}, 0, 4)), {"byte 49", "offset 4, expected a multiple of 32"}},
      {"offset-huge", one(tensor_info("a", {1}, 0, all - 31)), {"byte 49", "from offset 18446744073709551584"}},
      {"too-big",
       one(tensor_info("a", {17}, 0, 0)),
       {"byte 49", "'a' occupies bytes 64 to 132, but the file ends at 128"}},
      {"much-too-big", one(tensor_info("a", {uint64_t{1} << 61}, 0, 0)), {"2305843009213693952 blocks of 4 bytes"}},
      {"too-far", one(tensor_info("a", {1}, 0, 64)), {"'a' occupies bytes 128 to 132"}},
      {"same-name",
       gguf_file({}, {tensor_info("a", {1}, 0, 0), tensor_info("a", {1}, 0, 32)}, std::string(64, '\0')),
       {"byte 57", "'a' occurs twice"}},
      {"overlap",
       gguf_file({}, {tensor_info("b", {9}, 0, 0), tensor_info("a", {1}, 0, 32)}, std::string(64, '\0')),
       {"byte 82", "'a' begins at byte 128, but tensor 'b' ends at 132: they overlap"}},
      {"same-place",
       gguf_file({}, {tensor_info("b", {1}, 0, 0), tensor_info("a", {1}, 0, 0)}, std::string(64, '\0')),
       {"they overlap"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    expect_parts(error_of(c.bytes), c.parts);
  }
}

// Numbers that a file of a few bytes cannot mean must not cost memory or time.
TEST(Gguf, HugeNumbersCostNothing) {
  auto begin = std::chrono::steady_clock::now();
  for (int shift = 8; shift < 64; ++shift) {
    uint64_t n = uint64_t{1} << shift;
    error_of("GGUF" + u32(3) + u64(n) + u64(0));
    error_of("GGUF" + u32(3) + u64(0) + u64(n));
    error_of(gguf_file({metadatum("k", gguf_array, u32(gguf_u8) + u64(n))}));
    error_of(gguf_file({metadatum("k", gguf_array, u32(gguf_string) + u64(n))}));
    error_of(gguf_file({}, {tensor_info("a", {n}, 0, 0)}));
    error_of(gguf_file({}, {tensor_info("a", {1}, 0, n)}));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Gguf, FilesThatAreNone) {
  Folder f;
  expect_parts(message_of([&] { Gguf g(f / "none"); }), {"none: there is no such GGUF file"});
  expect_parts(message_of([&] { Gguf g(f.path()); }), {"not a regular file"});
  std::string path = f.write("a", two_tensors);
  Gguf g(path);
  std::filesystem::resize_file(path, two_tensors.size() - 1);
  expect_parts(message_of([&] { g.read(*g.find_tensor("b")); }), {path, "byte ", "became shorter"});
}

}  // namespace
}  // namespace tutti
