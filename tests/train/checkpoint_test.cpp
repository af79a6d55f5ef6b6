// Reading safetensors files: what the format allows, and every way in which a file can be wrong.
#include "data/files/checkpoint.h"

#include <chrono>
#include <cstring>

#include "tests/train/files.h"

namespace tutti {
namespace {

using namespace tutti::test;

// A file from the text of its header and its data, as the format's description says.
std::string safetensors_file(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  uint64_t n = header.size();
  for (int i = 0; i < 8; ++i) bytes[static_cast<size_t>(i)] = static_cast<char>(n >> 8 * i);
  return bytes + header + data;
}

std::string error_of(const std::string& path) {
  return message_of([&] { read_checkpoint(path); });
}

TEST(Checkpoint, RoundTripOfEveryDtype) {
  Folder f;
  Checkpoint c;
  c.metadata = {{"seed", "1"}, {"text", "a \"quoted\" ü\n"}};
  c.tensors["w"] = host_tensor<float>(DType::f32, {2, 3}, {1, -2, 3.5f, 0, 1e-40f, 6});
  c.tensors["d"] = host_tensor<double>(DType::f64, {1}, {1.0 / 3});
  c.tensors["h"] = host_tensor<uint16_t>(DType::f16, {2}, {0x3c00, 0x7e00});
  c.tensors["b"] = host_tensor<uint16_t>(DType::bf16, {1, 1}, {0x3f80});
  c.tensors["i"] = host_tensor<int32_t>(DType::i32, {3}, {-1, 0, 7});
  c.tensors["step"] = host_tensor<int64_t>(DType::i64, {}, {int64_t{1} << 40});
  c.tensors["u"] = host_tensor<uint8_t>(DType::u8, {3}, {0, 128, 255});
  c.tensors["flag"] = host_tensor<uint8_t>(DType::boolean, {1}, {1});
  c.tensors["bits"] = host_tensor<uint32_t>(DType::u32, {1}, {0xdeadbeef});
  c.tensors["empty"] = host_tensor<float>(DType::f32, {0, 4}, {});
  write_checkpoint(f / "a", c);
  Checkpoint back = read_checkpoint(f / "a");
  EXPECT_EQ(back.tensors, c.tensors);
  EXPECT_EQ(back.metadata, c.metadata);
}

TEST(Checkpoint, NothingInIt) {
  Folder f;
  write_checkpoint(f / "a", {});
  EXPECT_TRUE(read_checkpoint(f / "a").tensors.empty());
}

// The layout byte by byte, so that other readers of the format find what they expect.
TEST(Checkpoint, WritesTheFormat) {
  Folder f;
  Checkpoint c;
  c.tensors["b"] = host_tensor<float>(DType::f32, {1}, {1.0f});
  c.tensors["a"] = host_tensor<uint8_t>(DType::u8, {2}, {7, 8});
  c.metadata["k"] = "v";
  write_checkpoint(f / "a", c);
  std::string header = R"({"__metadata__":{"k":"v"},"a":{"data_offsets":[4,6],"dtype":"U8","shape":[2]},)"
                       R"("b":{"data_offsets":[0,4],"dtype":"F32","shape":[1]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(get(f / "a"), safetensors_file(header, std::string("\x00\x00\x80\x3f\x07\x08", 6)));
}

// A file as other writers make it: tensors in any order, trailing spaces in the header, no metadata.
TEST(Checkpoint, ReadsOthersFiles) {
  Folder f;
  put(f / "a", safetensors_file(R"({"x":{"dtype":"I32","shape":[1],"data_offsets":[4,8]},)"
                                R"("y":{"shape":[],"data_offsets":[0,4],"dtype":"F32"}}   )",
                                std::string("\x00\x00\x80\x3f\xff\xff\xff\xff", 8)));
  Checkpoint c = read_checkpoint(f / "a");
  EXPECT_EQ(c.tensors.at("x"), host_tensor<int32_t>(DType::i32, {1}, {-1}));
  EXPECT_EQ(c.tensors.at("y"), host_tensor<float>(DType::f32, {}, {1.0f}));
}

// The format has more element types than we have dtypes: such a file is sound.
TEST(Checkpoint, ElementTypesOfTheFormat) {
  Folder f;
  auto file = [&](const std::string& dtype, const std::string& shape) {
    put(f / "a", safetensors_file(R"({"w":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":[0,8]}})",
                                  std::string("\x01\xff\x7f\x80\x00\x00\xff\xff", 8)));
    return f / "a";
  };
  auto read = [&](const char* dtype, const char* shape) { return read_checkpoint(file(dtype, shape)).tensors.at("w"); };
  EXPECT_EQ(read("I8", "[8]"), host_tensor<int32_t>(DType::i32, {8}, {1, -1, 127, -128, 0, 0, -1, -1}));
  EXPECT_EQ(read("I16", "[2,2]"), host_tensor<int32_t>(DType::i32, {2, 2}, {-255, -32641, 0, -1}));
  EXPECT_EQ(read("U16", "[4]"), host_tensor<int32_t>(DType::i32, {4}, {65281, 32895, 0, 65535}));
  EXPECT_EQ(read("U32", "[2]").type.dtype, DType::u32);
  EXPECT_EQ(read("BF16", "[4]").type.dtype, DType::bf16);
  const std::pair<const char*, const char*> others[] = {
      {"F8_E4M3", "[8]"},     {"F8_E5M2", "[2,4]"}, {"F8_E8M0", "[8]"}, {"F8_E4M3FNUZ", "[8]"},
      {"F8_E5M2FNUZ", "[8]"}, {"F4", "[4,4]"},      {"U64", "[1]"},     {"C64", "[1]"}};
  for (const auto& [dtype, shape] : others) {
    CheckpointHeader header = read_checkpoint_header(file(dtype, shape));
    EXPECT_EQ(header.entries.at(0).element, dtype);
    EXPECT_EQ(header.entries.at(0).bytes, 8u);
    EXPECT_FALSE(header.entries.at(0).dtype);
    std::string said = message_of([&] { read_checkpoint(f / "a"); });
    expect_parts(said, {f / "a", "tensor 'w' has the unsupported dtype " + std::string(dtype) + ";",
                        "F32, F64, F16, BF16", "convert"});
    EXPECT_EQ(said.find("damaged"), said.npos) << said;
  }
}

TEST(Checkpoint, NamesFileByteAndExpectation) {
  Folder f;
  auto one = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"w":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  auto with = [&](const std::string& header) { return safetensors_file(header, "12345678"); };
  std::string good = with(one(R"("F32")", "[2]", "[0,8]"));
  std::string two =
      R"({"v":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"w":{"dtype":"U8","shape":[4],"data_offsets":)";
  struct Case {
    const char* name;
    std::string bytes;
    std::vector<std::string> parts;
  };
  const Case cases[] = {
      {"empty", "", {"byte 0", "header's length"}},
      {"short-length", good.substr(0, 5), {"byte 5", "header's length"}},
      {"short-header", good.substr(0, 20), {"byte 20", "ends inside its header"}},
      {"huge-header", "\xff\xff\xff\xff\xff\xff\xff\x7f{}", {"byte 0", "at most 100000000"}},
      {"no-header", with(""), {"byte 8", "'{'"}},
      {"space-first", with(" {}"), {"byte 8", "'{'"}},
      {"json", with(R"({"w":])"), {"byte 13", "no JSON"}},
      {"json-utf8", with("{\"\xff\":1}"), {"byte 10", "no JSON"}},
      {"list", with("[]"), {"byte 8", "'{'"}},
      {"deep", with(R"({"w":)" + std::string(100000, '[')), {"too deeply"}},
      {"long-list",
       with(R"({"w":[1)" +
            [] {
              std::string more;
              for (int i = 0; i < 32; ++i) more += ",1";
              return more;
            }() +
            "]}"),
       {"more than 32 elements"}},
      {"twice", with(R"({"w":{},"w":{}})"), {"'w' twice"}},
      {"twice-inside", with(R"({"w":{"dtype":"U8","dtype":"F32"}})"), {"'dtype' twice"}},
      {"no-dict", with(R"({"w":5})"), {"'w'", "dtype, shape and data_offsets"}},
      {"missing-key", with(R"({"w":{"dtype":"F32","shape":[2]}})"), {"'w'", "dtype, shape and data_offsets"}},
      {"extra-key", with(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})"), {"'w'", "exactly"}},
      {"dtype", with(one(R"("F99")", "[8]", "[0,8]")), {"'w'", "F99", "F32, F64"}},
      {"half-byte", with(one(R"("F4")", "[15]", "[0,8]")), {"'w'", "F4[15]", "whole number of bytes"}},
      {"size-of-float8", with(one(R"("F8_E4M3")", "[9]", "[0,8]")), {"'w'", "F8_E4M3[9] needs 9 bytes"}},
      {"dtype-number", with(one("5", "[8]", "[0,8]")), {"'w'", "dtype 5"}},
      {"shape", with(one(R"("F32")", "2", "[0,8]")), {"'w'", "shape"}},
      {"negative", with(one(R"("F32")", "[-2]", "[0,8]")), {"'w', shape", "'-2'"}},
      {"real", with(one(R"("F32")", "[2.0]", "[0,8]")), {"'w', shape", "'2.0'"}},
      {"overflow", with(one(R"("F32")", "[4294967296,4294967296]", "[0,8]")), {"'w'", "2^62"}},
      {"overflow-bytes", with(one(R"("F32")", "[4611686018427387904]", "[0,8]")), {"'w'", "2^56"}},
      {"offsets", with(one(R"("F32")", "[2]", "[0,8,9]")), {"'w'", "data_offsets"}},
      {"offsets-text", with(one(R"("F32")", "[2]", R"(["0",8])")), {"'w'", "data_offsets"}},
      {"backwards", with(one(R"("F32")", "[2]", "[8,0]")), {"'w'", "8 bytes", "[8, 0]"}},
      {"size", with(one(R"("F32")", "[3]", "[0,8]")), {"'w'", "F32[3] needs 12 bytes"}},
      {"gap", with(one(R"("F32")", "[1]", "[4,8]")), {"'w'", "expected 0", "gap"}},
      {"overlap", with(two + "[3,7]}}"), {"'w'", "offset 3", "expected 4", "overlap"}},
      {"same", with(two + "[0,4]}}"), {"overlap"}},
      {"short-data", good.substr(0, good.size() - 1), {"according to its header"}},
      {"long-data", good + "x", {"according to its header"}},
      {"metadata", with(R"({"__metadata__":5})"), {"__metadata__"}},
      {"metadata-value", with(R"({"__metadata__":{"a":5}})"), {"__metadata__ 'a'"}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    put(f / c.name, c.bytes);
    std::string text = error_of(f / c.name);
    expect_parts(text, {f / c.name, "byte"});
    expect_parts(text, c.parts);
  }
  expect_parts(error_of(f / "nothing"), {f / "nothing", "no such checkpoint"});
  expect_parts(error_of(f.path()), {f.path(), "a folder, expected a safetensors file"});
}

// Whatever byte is damaged, the answer is a checkpoint or an Error.
// A parser that walks all names again at each of them takes minutes here.
TEST(Checkpoint, ManyTensorsAreReadInLinearTime) {
  Folder f;
  std::string header = "{";
  for (int i = 0; i < 100000; ++i)
    header += (i ? ",\"t" : "\"t") + std::to_string(i) + R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  put(f / "many", safetensors_file(header + "}", ""));
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(read_checkpoint(f / "many").tensors.size(), 100000u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Checkpoint, EveryDamagedByteIsSurvived) {
  Folder f;
  Checkpoint c;
  c.tensors["w"] = host_tensor<float>(DType::f32, {2}, {1, 2});
  c.metadata["seed"] = "1";
  write_checkpoint(f / "good", c);
  std::string bytes = get(f / "good");
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int flip : {0x01, 0x20, 0x80, 0xff}) {
      std::string bent = bytes;
      bent[i] = static_cast<char>(bent[i] ^ flip);
      put(f / "bent", bent);
      try {
        for (const auto& [name, t] : read_checkpoint(f / "bent").tensors) EXPECT_EQ(t.bytes.size(), num_bytes(t.type));
      } catch (const Error& e) {
        expect_parts(e.what(), {f / "bent"});
      }
    }
}

}  // namespace
}  // namespace tutti
