// Columns of training data in safetensors files.
#include <algorithm>
#include <numeric>

#include "data/dataset.h"
#include "data/files/checkpoint.h"
#include "tests/data/columns.h"
#include "tests/train/files.h"

namespace tutti::data {
namespace {

using namespace tutti::test;

struct File {
  Folder folder;
  std::string path = folder / "set.safetensors";
  Sources open(const Checkpoint& c) {
    write_checkpoint(path, c);
    return open_data("safetensors:" + path);
  }
  std::string error(const Checkpoint& c) {
    return message_of([&] { open(c); });
  }
};

HostTensor labels(DType dtype, const std::vector<double>& values) {
  HostTensor t{{dtype, {static_cast<int64_t>(values.size())}}, {}};
  t.bytes.resize(num_bytes(t.type));
  for (size_t i = 0; i < values.size(); ++i) store_element(dtype, t.bytes.data(), i, values[i]);
  return t;
}

TEST(Safetensors, ColumnsOfBothHalves) {
  File f;
  HostTensor input = host_tensor(DType::f32, {3, 2}, std::vector<float>{1, 2, 3, 4, 5, 6});
  Sources s = f.open({{{"input", input},
                       {"label", labels(DType::i64, {0, 2, 1})},
                       {"test.input", host_tensor(DType::f32, {1, 2}, std::vector<float>{7, 8})},
                       {"test.label", labels(DType::i64, {4})}},
                      {}});
  EXPECT_EQ(s.train->name, "set.safetensors/train");
  EXPECT_EQ(s.test->name, "set.safetensors/test");
  EXPECT_EQ(all_of<float>(*s.train, "input"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(all_of<int32_t>(*s.train, "label"), (std::vector<int32_t>{0, 2, 1}));
  EXPECT_EQ(all_of<float>(*s.test, "input"), (std::vector<float>{7, 8}));
  EXPECT_EQ(s.train->column("label").type, (TensorType{DType::i32, {}}));
  EXPECT_EQ(s.train->column("label").classes, 5) << "those of the test count";
  EXPECT_EQ(s.train->column("input").classes, 0);
}

TEST(Safetensors, TheLastTenthIsTheTest) {
  File f;
  std::vector<double> numbers(20);
  std::iota(numbers.begin(), numbers.end(), 0);
  Sources s = f.open({{{"label", labels(DType::i32, numbers)}}, {}});
  EXPECT_EQ(s.train->size(), 18);
  EXPECT_EQ(s.test->size(), 2);
  std::vector<int32_t> all = all_of<int32_t>(*s.train, "label"), test = all_of<int32_t>(*s.test, "label");
  EXPECT_FALSE(std::is_sorted(all.begin(), all.end())) << "they are shuffled";
  all.insert(all.end(), test.begin(), test.end());
  std::ranges::sort(all);
  for (int32_t i = 0; i < 20; ++i) EXPECT_EQ(all[static_cast<size_t>(i)], i) << "each occurs once";
}

TEST(Safetensors, ElementTypes) {
  File f;
  Sources s = f.open({{{"images", {{DType::u8, {2, 1}}, {std::byte{9}, std::byte{200}}}},
                       {"bytes", labels(DType::u8, {3, 250})},
                       {"doubles", labels(DType::f64, {0.5, -2})},
                       {"halves", labels(DType::bf16, {0.5, -2})},
                       {"flags", labels(DType::boolean, {1, 0})},
                       {"ignored", labels(DType::i64, {-100, 3})},
                       {"few", labels(DType::i32, {0, 1})}},
                      {{"classes.few", "10"}}});
  auto dtype = [&](const char* name) { return s.train->column(name).type.dtype; };
  EXPECT_EQ(dtype("images"), DType::u8);
  EXPECT_EQ(dtype("bytes"), DType::i32);
  EXPECT_EQ(dtype("doubles"), DType::f32);
  EXPECT_EQ(dtype("halves"), DType::f32);
  EXPECT_EQ(dtype("flags"), DType::i32);
  EXPECT_EQ(dtype("ignored"), DType::i32);
  EXPECT_EQ(s.train->column("ignored").classes, 0) << "negative values do not tell";
  EXPECT_EQ(s.train->column("few").classes, 10) << "as the metadata says";
  std::vector<float> doubles = all_of<float>(*s.train, "doubles"), rest = all_of<float>(*s.test, "doubles");
  EXPECT_EQ(doubles[0] + rest[0], -1.5f);
}

TEST(Safetensors, WhatIsWrongIsNamed) {
  File f;
  HostTensor two = labels(DType::f32, {1, 2}), three = labels(DType::f32, {1, 2, 3});
  expect_parts(f.error({{{"a", two}, {"b", three}}, {}}), {f.path, "'b' has 3 rows, but 'a' has 2"});
  expect_parts(f.error({{{"a", {{DType::f32, {}}, std::vector<std::byte>(4)}}}, {}}), {"'a'", "one row per sample"});
  expect_parts(f.error({{{"a", labels(DType::f32, {1})}}, {}}), {f.path, "only one sample"});
  expect_parts(f.error({{{"a", two}, {"test.b", two}}, {}}), {f.path, "do not match the training columns"});
  expect_parts(f.error({{{"test.a", two}}, {}}), {f.path, "no training columns"});
  expect_parts(f.error({{{"a", labels(DType::i64, {1, 3e9})}}, {}}),
               {"'a'", "element 1 is 3000000000, which does not fit i32"});
  expect_parts(f.error({{{"a", labels(DType::i32, {1, 2})}}, {{"classes.a", "many"}}}), {"classes.a", "many"});
  expect_parts(message_of([&] { open_data("safetensors:" + f.folder / "nothing"); }), {"nothing", "no such"});
}

}  // namespace
}  // namespace tutti::data
