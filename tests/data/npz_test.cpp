// .npz files: NumPy's own, written ones, and files that lie.
#include "data/files/npz.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "data/dataset.h"
#include "data/files/checkpoint.h"
#include "data/files/npy.h"
#include "tests/data/columns.h"
#include "tests/train/files.h"

namespace tutti {
namespace {

using namespace tutti::test;

std::string golden(const std::string& name) { return std::string(GOLDEN_DIR) + "/npz/" + name; }

struct Npz : testing::Test {
  Folder folder;
  std::string path = folder / "x.npz";
  /// What is said of a file of those bytes.
  std::string error(const std::string& bytes) {
    put(path, bytes);
    return message_of([&] { read_npz(path); });
  }
};

TEST_F(Npz, NumPysArrays) {
  HostTensors want = read_checkpoint(golden("arrays.safetensors")).tensors;
  ASSERT_EQ(want.size(), 16u);
  for (const char* file : {"plain.npz", "packed.npz", "large.npz", "big_endian.npz"}) {
    HostTensors got = read_npz(golden(file));
    ASSERT_EQ(got.size(), want.size()) << file;
    for (const auto& [name, t] : want) EXPECT_TRUE(got.at(name) == t) << file << ": " << name;
  }
}

TEST_F(Npz, WhatIsWrittenIsRead) {
  HostTensors all = read_checkpoint(golden("arrays.safetensors")).tensors;
  write_npz(path, all);
  EXPECT_TRUE(read_npz(path) == all);
  write_npz(path, {});
  EXPECT_TRUE(read_npz(path).empty());
  expect_parts(message_of([&] {
                 write_npz(path, {{"x", {{DType::bf16, {0}}, {}}}});
               }),
               {"NumPy files do not support bf16"});
  EXPECT_TRUE(read_npz(path).empty()) << "the file is as it was";
}

TEST_F(Npz, WhatIsRefusedIsNamed) {
  for (const auto& [file, parts] : std::map<std::string, std::vector<std::string>>{
           {"objects.npz", {"'x.npy'", "'|O'", "pickled", "can run arbitrary code"}},
           {"records.npz", {"'x.npy'", "records with fields"}},
           {"complex.npz", {"'<c8'", "astype"}},
           {"lzma.npz", {"'x.npy'", "method 14", "np.savez"}},
           {"none.npz", {"there is no such NumPy archive"}}})
    expect_parts(message_of([&] { read_npz(golden(file)); }), parts);
  expect_parts(error(""), {"not a zip archive"});
  for (size_t more : {10, 1 << 17})
    expect_parts(error("\x93NUMPY" + std::string(more, ' ')), {"a single array (.npy)", "np.savez"});
}

TEST_F(Npz, EveryCutAndEveryChangedByteIsNoticedOrHarmless) {
  for (const char* file : {"packed.npz", "large.npz"}) {
    std::string whole = get(golden(file));
    for (size_t n = 0; n < whole.size(); n += 1 + whole.size() / 150)
      expect_parts(error(whole.substr(0, n)), {"x.npz"});
  }
  std::string whole = get(golden("packed.npz"));
  HostTensors right = read_npz(golden("packed.npz"));
  size_t refused = 0, tries = 0;
  for (size_t at = 0; at < whole.size(); at += 5)
    for (int change : {at % 2 ? 1 : 0xff}) {
      std::string bad = whole;
      bad[at] = static_cast<char>(bad[at] ^ change);
      put(path, bad);
      ++tries;
      try {  // names alone, times and the like have no checksum
        HostTensors got = read_npz(path);
        EXPECT_LE(got.size(), right.size());
        for (const auto& [name, t] : got) {
          auto it = right.find(name);
          if (it != right.end()) EXPECT_TRUE(t == it->second) << at << " " << name;
        }
      } catch (const Error& e) {
        EXPECT_EQ(e.code, Code::invalid) << e.what();
        ++refused;
      }
    }
  EXPECT_GT(refused, tries * 6 / 10);
}

TEST_F(Npz, LiesAboutSizes) {
  std::string whole = get(golden("packed.npz"));
  auto changed = [&](size_t at, uint32_t x) {
    std::string bad = whole;
    for (size_t i = 0; i < 4; ++i) bad[at + i] = static_cast<char>(x >> (8 * i) & 0xff);
    return bad;
  };
  size_t entry = whole.find("PK\x01\x02"), end = whole.rfind("PK\x05\x06");
  expect_parts(error(changed(entry + 24, 0xfffffff0)), {"'f8.npy'", "cannot contain 4294967280"});
  expect_parts(error(changed(entry + 20, 0x7fffffff)), {"overlaps the directory"});
  expect_parts(error(changed(entry + 42, 7)), {"local header"});
  expect_parts(error(changed(end + 16, 0x7fffffff)), {"does not fit into the file"});
  expect_parts(error(changed(end + 12, 0x7fffffff)), {"does not fit into the file"});
  expect_parts(error(changed(entry + 8, 0x00080001)), {"'f8.npy' is encrypted"});
  std::string twice = whole;
  size_t second = whole.find("PK\x01\x02", entry + 4);
  std::copy(whole.begin() + static_cast<int64_t>(entry) + 42, whole.begin() + static_cast<int64_t>(entry) + 46,
            twice.begin() + static_cast<int64_t>(second) + 42);
  expect_parts(error(twice), {"overlaps other parts"});
}

TEST_F(Npz, HeadersThatDoNotHold) {
  auto said = [&](const std::string& header, size_t data) {
    std::string bytes =
        std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header + std::string(data, '\0');
    size_t at = 0;
    return message_of([&] {
      read_npy([&](void* to,
                   uint64_t n) { std::copy_n(bytes.data() + std::exchange(at, at + n), n, static_cast<char*>(to)); },
               bytes.size(), "here");
    });
  };
  std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
  expect_parts(said(good, 11), {"here: shape", "'<f4'", "11 bytes"});
  expect_parts(said(good + "x", 12), {"its header is"});
  for (const char* shape : {"(-1,)", "(3", "(3,,)", "3", "(99999999999999999999,)", "(2.5,)"})
    expect_parts(said(fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': {}, }}", shape), 12),
                 {"its header is"});
  expect_parts(said("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967297), }", 12),
               {"does not match the 12 bytes"});
  expect_parts(said("{'descr': '<f4', 'shape': (3,), }", 12), {"its header is"});
  expect_parts(said("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1, }", 12), {"its header is"});
  expect_parts(said("{'descr': '<f4', 'fortran_order': 1, 'shape': (3,), }", 12), {"its header is"});
  expect_parts(said("", 12), {"its header is"});
}

TEST_F(Npz, NumbersThatAreNotFiniteAreNamedWithTheirRow) {
  auto said = [&](const std::string& key, std::vector<double> values, DType dtype = DType::f32) {
    HostTensor good = host_tensor(DType::f32, {4, 3}, std::vector<float>(12));
    HostTensor bad = host_tensor(DType::f64, {4, 3}, values).to(dtype);
    HostTensors all{{"input", good}, {"test.input", good}};
    all[key] = bad;
    write_npz(path, all);
    return message_of([&] { data::open_data("npz:" + path); });
  };
  std::vector<double> values(12, 0.5);
  write_npz(path, {{"input", host_tensor(DType::f32, {4, 3}, std::vector<float>(12, 0.5f))}});
  EXPECT_NO_THROW(data::open_data("npz:" + path));
  values[7] = std::nan("");
  for (DType dtype : {DType::f32, DType::f64, DType::f16})
    expect_parts(said("input", values, dtype),
                 {path + ": column 'input', row 2 (the first is 0)", "NaN", "correct or remove that row"});
  values[7] = -HUGE_VAL;
  expect_parts(said("test.input", values), {"column 'test.input', row 2", "-inf"});
  values[7] = 1e300;
  expect_parts(said("input", values, DType::f64), {"row 2", "1e+300", "f32"});
  std::vector<float> many(70001);
  many[70000] = HUGE_VALF;
  write_npz(path, {{"x", host_tensor(DType::f32, {70001}, many)}});
  expect_parts(message_of([&] { data::open_data("npz:" + path); }), {"column 'x', row 70000", "inf"});
}

TEST_F(Npz, AsData) {
  write_npz(path, {{"input", host_tensor(DType::f64, {3, 2}, std::vector<double>{1, 2, 3, 4, 5, 6})},
                   {"label", host_tensor(DType::i64, {3}, std::vector<int64_t>{0, 2, 1})},
                   {"classes.label", host_tensor(DType::i64, {}, std::vector<int64_t>{7})},
                   {"test.input", host_tensor(DType::f64, {1, 2}, std::vector<double>{7, 8})},
                   {"test.label", host_tensor(DType::i64, {1}, std::vector<int64_t>{4})}});
  data::Sources s = data::open_data("npz:" + path);
  EXPECT_EQ(all_of<float>(*s.train, "input"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(all_of<int32_t>(*s.test, "label"), (std::vector<int32_t>{4}));
  EXPECT_EQ(s.train->column("label").classes, 7);
  write_npz(path, {{"label", host_tensor(DType::i32, {2}, std::vector<int32_t>{0, 1})},
                   {"classes.label", host_tensor({1, 2})}});
  expect_parts(message_of([&] { data::open_data("npz:" + path); }), {"classes.label", "a single integer"});
}

}  // namespace
}  // namespace tutti
