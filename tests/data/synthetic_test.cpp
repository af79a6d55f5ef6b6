// Synthetic data of several columns: shapes, bits, what does not fit.
#include <map>
#include <numeric>
#include <set>

#include "data/dataset.h"
#include "tests/train/files.h"

namespace tutti::data {
namespace {

using namespace tutti::test;

/// The column's samples 0 … count - 1.
template <class T>
std::vector<T> first(const Source& s, const std::string& column, int32_t count) {
  std::vector<int32_t> samples;
  for (int32_t i = 0; i < count; ++i) samples.push_back(i);
  std::vector<T> values(static_cast<size_t>(count * num_elements(s.column(column).type.shape)));
  s.read(column, samples, values.data());
  return values;
}

std::string error_of(const std::string& spec) {
  return message_of([&] { open_data(spec); });
}

// Checkpoints and scripts of version 0.2 have the earlier names.
TEST(Synthetic, EarlierNamesOpenTheSameData) {
  for (const std::string rest : {"table:3:2:4:100", "clicks:3:3:10:64", "triplets:12:9:64", "text:65:4096"}) {
    SCOPED_TRACE(rest);
    Sources both[] = {open_data("synthetic-" + rest), open_data("made-up-" + rest)};
    const Source &now = *both[0].train, &earlier = *both[1].train;
    EXPECT_EQ(now.name, earlier.name);
    ASSERT_EQ(now.size(), earlier.size());
    for (const Column& c : now.columns())
      EXPECT_EQ(first<int32_t>(now, c.name, 1), first<int32_t>(earlier, c.name, 1)) << c.name;
    EXPECT_EQ(generated_bytes("synthetic-" + rest), generated_bytes("made-up-" + rest));
  }
  expect_parts(error_of("made-up-table:1"), {"synthetic-table:NUMBERS:CATEGORIES:CLASSES[:ROWS]"});
}

TEST(SyntheticTable, HasTheColumnsAskedFor) {
  Sources s = open_data("synthetic-table:3:2:4:100");
  s.train->check();
  s.test->check();
  EXPECT_EQ(s.train->size(), 100);
  EXPECT_EQ(s.test->size(), 25);
  EXPECT_EQ(to_string(s.train->column("numbers").type), "f32[3]");
  EXPECT_EQ(s.train->column("category.c1").classes, 8);
  std::vector<int32_t> labels = first<int32_t>(*s.train, "label", 100);
  EXPECT_EQ(std::set<int32_t>(labels.begin(), labels.end()).size(), 4u);
  for (const char* column : {"category.c0", "category.c1", "label"})
    s.train->check_within(column, {.end = s.train->column(column).classes});
  EXPECT_EQ(generated_bytes("synthetic-table:3:2:4:100"), s.train->table_bytes() + s.test->table_bytes());
  EXPECT_EQ(open_data("synthetic-table:0:1:2").train->columns().size(), 2u);
  EXPECT_EQ(open_data("synthetic-table:1:0:1").train->column("target").type.dtype, DType::f32);
}

// The bits are part of the contract: runs on synthetic data can be compared between machines.
TEST(SyntheticTable, FrozenBits) {
  Sources s = open_data("synthetic-table:2:1:3:8");
  EXPECT_EQ(first<float>(*s.train, "numbers", 1), (std::vector<float>{29626 * 0x1p-15f, 20666 * 0x1p-15f}));
  EXPECT_EQ(first<int32_t>(*s.train, "category.c0", 8), (std::vector<int32_t>{0, 0, 1, 1, 0, 2, 2, 0}));
  EXPECT_EQ(first<int32_t>(*s.train, "label", 8), (std::vector<int32_t>{1, 2, 1, 2, 1, 1, 1, 2}));
  EXPECT_NEAR(first<float>(*open_data("synthetic-table:2:1:1:8").test, "target", 1)[0], 0.0898137f, 1e-7);
}

TEST(SyntheticTable, BadSpecs) {
  expect_parts(error_of("synthetic-table:3:2"), {"CLASSES is missing", "synthetic-table:NUMBERS"});
  expect_parts(error_of("synthetic-table:3:x:2"), {"CATEGORIES is 'x'", "from 0 to 1024"});
  expect_parts(error_of("synthetic-table:3:2:0"), {"CLASSES is '0'", "from 1"});
  expect_parts(error_of("synthetic-table:3:2:2:9:9"), {"at most 4 numbers", "found 5"});
  expect_parts(error_of("synthetic-table:0:0:2"), {"no columns"});
  expect_parts(error_of("synthetic-table:4096:1024:2:16777216"), {"at most 8 GiB", "fewer samples"});
}

TEST(SyntheticClicks, HaveTheColumnsAskedFor) {
  Sources s = open_data("synthetic-clicks:3:2:50:400");
  s.train->check();
  s.test->check();
  EXPECT_EQ(s.train->size(), 400);
  EXPECT_EQ(s.test->size(), 100);
  EXPECT_EQ(to_string(s.train->column("dense").type), "f32[3]");
  EXPECT_EQ(to_string(s.train->column("sparse").type), "i32[2, 4]");
  EXPECT_EQ(s.train->column("sparse").classes, 50);
  s.train->check_within("sparse", {.end = 50});
  std::vector<float> label = first<float>(*s.train, "label", 400);
  EXPECT_NEAR(std::accumulate(label.begin(), label.end(), 0.0f), 200, 60);
  EXPECT_EQ(generated_bytes("synthetic-clicks:3:2:50:400"), s.train->table_bytes() + s.test->table_bytes());
  EXPECT_EQ(first<int32_t>(*s.train, "sparse", 1), (std::vector<int32_t>{26, 35, 48, 14, 38, 11, 17, 38}));
  expect_parts(error_of("synthetic-clicks:3:2"), {"ROWS is missing", "synthetic-clicks:DENSE"});
  expect_parts(error_of("synthetic-clicks:0:2:9"), {"DENSE is '0'"});
}

TEST(SyntheticTriplets, AreOfClusters) {
  Sources s = open_data("synthetic-triplets:20:11:600");
  s.train->check();
  s.test->check();
  EXPECT_EQ(s.test->size(), 150);
  EXPECT_EQ(s.train->column("anchor").classes, 20);
  EXPECT_EQ(s.train->column("negative").classes, 11);
  s.train->check_within("anchor", {.end = 20});
  s.train->check_within("positive", {.end = 11});
  s.train->check_within("negative", {.end = 11});
  // Every positive of a user, in both halves, is of one cluster, and no negative is.
  std::map<int32_t, int32_t> cluster;
  for (const auto& half : {s.train, s.test}) {
    auto count = static_cast<int32_t>(half->size());
    std::vector<int32_t> user = first<int32_t>(*half, "anchor", count), yes = first<int32_t>(*half, "positive", count),
                         no = first<int32_t>(*half, "negative", count);
    for (size_t i = 0; i < user.size(); ++i) {
      int32_t own = cluster.emplace(user[i], yes[i] % 8).first->second;
      EXPECT_EQ(yes[i] % 8, own);
      EXPECT_NE(no[i] % 8, own);
    }
  }
  EXPECT_EQ(cluster.size(), 20u);
  EXPECT_EQ(open_data("synthetic-triplets:1:2:9").train->size(), 9);
  expect_parts(error_of("synthetic-triplets:5:1"), {"ITEMS is '1'", "from 2"});
}

}  // namespace
}  // namespace tutti::data
