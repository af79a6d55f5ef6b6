#include "data/dataset.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "tests/data/idx_files.h"

namespace tutti::data {
namespace {

using namespace tutti::test;

std::string error_of(const std::string& spec) {
  return message_of([&] { open_data(spec); });
}

float element(const Dataset& d, size_t i) {
  float x = 0;
  std::memcpy(&x, d.samples.bytes.data() + 4 * i, 4);
  return x;
}

TEST(IdxFolder, ReadsMnistLayout) {
  Folder f;
  put_mnist(f);
  auto [train, test] = idx_folder(f.path());
  EXPECT_EQ(to_string(train.samples.type), "u8[6, 1, 2, 2]");
  EXPECT_EQ(to_string(test.sample_type()), "u8[1, 2, 2]");
  EXPECT_EQ(train.labels, (std::vector<int32_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(test.labels, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(train.classes, 3);
  EXPECT_EQ(test.classes, 3);
  EXPECT_EQ(test.size(), 3);
}

TEST(IdxFolder, NamesWhatIsMissing) {
  Folder f;
  expect_parts(error_of("idx:" + f / "no"), {f / "no", "no such folder"});
  put_mnist(f);
  std::filesystem::remove(f / "t10k-labels-idx1-ubyte.gz");
  expect_parts(error_of("idx:" + f.path()), {f.path(), "t10k-labels-idx1-ubyte.gz", "plain or .gz"});
}

TEST(IdxFolder, ImagesAndLabelsMustAgree) {
  Folder f;
  put_mnist(f);
  put(f / "train-labels-idx1-ubyte", idx(8, {5}, std::string(5, '\1')));
  expect_parts(error_of("idx:" + f.path()), {"train-images", "6 images", "train-labels", "5 labels", "byte 4"});
  put_mnist(f);
  put(f / "train-labels-idx1-ubyte", idx(8, {6, 1}, std::string(6, '\1')));
  expect_parts(error_of("idx:" + f.path()), {"train-labels", "byte 3", "rank 2"});
  put_mnist(f);
  put_gz(f / "t10k-images-idx3-ubyte.gz", idx(8, {3, 4, 1}, std::string(12, '\1')));
  expect_parts(error_of("idx:" + f.path()), {"u8[1, 2, 2]", "u8[1, 4, 1]"});
  put_mnist(f);
  put(f / "train-images-idx3-ubyte", idx(8, {0, 2, 2}, ""));
  put(f / "train-labels-idx1-ubyte", idx(8, {0}, ""));
  expect_parts(error_of("idx:" + f.path()), {"train-images", "contain a 0"});
}

TEST(IdxFolder, LabelOutOfRangeNamesFileAndByte) {
  Folder f;
  put_mnist(f);
  put_gz(f / "t10k-labels-idx1-ubyte.gz", idx(8, {3}, std::string("\0\7\2", 3)));
  expect_parts(error_of("idx:" + f.path()), {f / "t10k-labels-idx1-ubyte.gz", "byte 9", "label 7", "[0, 3)"});
  put_mnist(f);
  put(f / "train-labels-idx1-ubyte", idx(0x0C, {6}, std::string(20, '\0') + "\xff\xff\xff\xff"));
  expect_parts(error_of("idx:" + f.path()), {"train-labels", "byte 28", "label -1"});
}

TEST(FashionMnist, NamesThePackage) {
  Folder f;
  setenv("TUTTI_DATA_DIR", f.path().c_str(), 1);
  put_mnist(f);  // the folder itself serves when it holds the files
  EXPECT_EQ(fashion_mnist().train.size(), 6);
  EXPECT_EQ(fashion_mnist().train.classes, 10);
  std::filesystem::remove(f / "train-images-idx3-ubyte");
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist"))
    expect_parts(error_of("fashion-mnist"), {f.path(), "apt install dataset-fashion-mnist"});
  unsetenv("TUTTI_DATA_DIR");
}

TEST(FashionMnist, DebiansFiles) {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist"))
    GTEST_SKIP() << "dataset-fashion-mnist not installed";
  auto [train, test] = fashion_mnist();
  EXPECT_EQ(to_string(train.samples.type), "u8[60000, 1, 28, 28]");
  EXPECT_EQ(to_string(test.samples.type), "u8[10000, 1, 28, 28]");
  std::vector<int> count(10);
  for (int32_t label : train.labels) ++count[static_cast<size_t>(label)];
  EXPECT_EQ(count, std::vector<int>(10, 6000));
  EXPECT_EQ(train.labels[0], 9);  // an ankle boot comes first
  double sum = 0;
  for (std::byte b : train.samples.bytes) sum += std::to_integer<int>(b);
  EXPECT_NEAR(sum / static_cast<double>(train.samples.bytes.size()) / 255, 0.2860, 1e-4);  // the published mean
}

TEST(Synthetic, ShapesSizesAndReplay) {
  auto a = synthetic({1, 4, 5}, 3, 100, 40), b = synthetic({1, 4, 5}, 3, 100, 40);
  EXPECT_EQ(to_string(a.train.samples.type), "f32[100, 1, 4, 5]");
  EXPECT_EQ(to_string(a.test.samples.type), "f32[40, 1, 4, 5]");
  EXPECT_EQ(a.train.samples, b.train.samples);
  EXPECT_EQ(a.test.labels, b.test.labels);
  EXPECT_NE(a.train.samples, synthetic({1, 4, 5}, 3, 100, 40, 1).train.samples);
  EXPECT_EQ(open_data("synthetic:8:3").train->size(), 8192);
  EXPECT_EQ(open_data("synthetic:8:3:64").test->size(), 16);
}

// More classes than samples: their prototypes are drawn as they are needed, and are the same.
TEST(Synthetic, ManyClassesTakeNoMemory) {
  Split few = synthetic({5}, 40, 30, 10), many = synthetic({5}, 41, 30, 10), huge = synthetic({5}, 2000000000, 8, 2);
  EXPECT_EQ(huge.train.classes, 2000000000);
  EXPECT_EQ(synthetic_bytes({5}, 2000000000, 8, 2), (10 + 10 + 1) * 5 * 4u);
  size_t compared = 0;
  for (size_t i = 0; i < 30; ++i) {
    if (few.train.labels[i] != many.train.labels[i]) continue;
    ++compared;
    for (size_t k = 0; k < 5; ++k) EXPECT_EQ(element(few.train, i * 5 + k), element(many.train, i * 5 + k)) << i;
  }
  EXPECT_GT(compared, 10u);
}

// The bits are part of the contract: runs on synthetic data can be compared between machines.
TEST(Synthetic, FrozenBits) {
  auto [train, test] = synthetic({4}, 5, 2, 1);
  EXPECT_EQ(train.labels, (std::vector<int32_t>{3, 2}));
  EXPECT_EQ(element(train, 0), -0x1.594608p-2f);
  EXPECT_EQ(element(test, 3), 0x1.192a88p-1f);
}

// Learnable: the nearest class mean of the training samples names nearly every test sample; labels are balanced.
TEST(Synthetic, NearestMeanLearnsIt) {
  auto [train, test] = synthetic({32}, 4, 2000, 400);
  std::vector<double> mean(4 * 32), count(4);
  for (size_t i = 0; i < 2000; ++i) {
    auto c = static_cast<size_t>(train.labels[i]);
    count[c] += 1;
    for (size_t k = 0; k < 32; ++k) mean[c * 32 + k] += element(train, i * 32 + k);
  }
  for (double n : count) EXPECT_NEAR(n, 500, 100);
  int right = 0;
  for (size_t i = 0; i < 400; ++i) {
    size_t best = 0;
    double least = 1e300;
    for (size_t c = 0; c < 4; ++c) {
      double d = 0;
      for (size_t k = 0; k < 32; ++k) d += std::pow(element(test, i * 32 + k) - mean[c * 32 + k] / count[c], 2);
      if (d < least) least = d, best = c;
    }
    right += static_cast<int32_t>(best) == test.labels[i];
  }
  EXPECT_GE(right, 390);
}

// Every class occurs, and where a figure lies the image differs from the background.
TEST(Shapes, LabelsSayWhereFiguresAre) {
  Sources s = open_data("shapes:32:64:8");
  EXPECT_EQ(s.train->size(), 64);
  EXPECT_EQ(s.test->size(), 8);
  EXPECT_EQ(s.train->column("label").classes, 4);
  constexpr size_t pixels = 32 * 32;
  std::vector<uint8_t> image(pixels);
  std::vector<int32_t> label(pixels);
  std::array<int, 4> count = {};
  for (int32_t i = 0; i < 64; ++i) {
    s.train->read("input", std::span(&i, 1), image.data());
    s.train->read("label", std::span(&i, 1), label.data());
    double ground = 0, positions = 0;
    for (size_t k = 0; k < pixels; ++k)
      if (label[k] == 0) ground += image[k], positions += 1;
    ground /= positions;
    double apart = 0;
    for (size_t k = 0; k < pixels; ++k) {
      ++count.at(static_cast<size_t>(label[k]));
      if (label[k] == 0) EXPECT_LE(std::abs(image[k] - ground), 24) << i << " " << k;  // noise of at most 20
      if (label[k] != 0) apart += std::abs(image[k] - ground);
    }
    if (positions < pixels) EXPECT_GT(apart / (pixels - positions), 20) << i;
  }
  for (int n : count) EXPECT_GT(n, 1000);
  EXPECT_EQ(generated_bytes("shapes:32:64:8"), 72 * pixels * 5);
}

TEST(ParseData, BadSpecs) {
  for (const char* spec : {"", "mnist"})
    expect_parts(error_of(spec), {spec, "fashion-mnist", "idx:DIR", "synthetic:SHAPE:CLASSES"});
  // Where the kind is known, its form alone.
  expect_parts(error_of("idx:"), {"'idx:'", "use idx:DIR (a folder in MNIST's layout)"});
  for (const char* spec :
       {"synthetic:", "synthetic:10", "synthetic:0:10", "synthetic:1x:10", "synthetic:8:0", "synthetic:8:10:0",
        "synthetic:8:10:5:5:5", "synthetic:8:1e3", "synthetic:-8:3", "synthetic:99999999999999999999:3"}) {
    expect_parts(error_of(spec), {spec, "use synthetic:SHAPE:CLASSES[:TRAIN[:TEST]]"});
    EXPECT_EQ(error_of(spec).find("fashion-mnist"), std::string::npos) << spec;
  }
  for (const char* spec :
       {"fashion-mnist:3x8x8", "fashion-mnist:32x32", "fashion-mnist:9x32x32", "fashion-mnist:3xax32"})
    expect_parts(error_of(spec), {spec, "1 to 4 channels"});
  for (const char* spec : {"shapes:4", "shapes:16:0", "shapes:16:8:8:8", "shapes:x"})
    expect_parts(error_of(spec), {spec, "a size from 8 to 1024"});
  for (const char* spec : {"orientation:4", "orientation:16:0", "orientation:16:8:8:8", "orientation:x"})
    expect_parts(error_of(spec), {spec, "a size from 8 to 1024"});
  for (const char* spec : {"synthetic-text:1", "synthetic-text:x", "synthetic-text:5:9:1"})
    expect_parts(error_of(spec), {spec});
  expect_parts(error_of("synthetic:3x4096x4096:10"), {"more than 8 GiB", "fewer samples"});
  expect_parts(error_of("synthetic:4294967296x4294967296:10"), {"2^62"});
}

TEST(Dataset, CheckFindsWhatDoesNotFit) {
  Dataset good;
  good.name = "mine";
  good.samples = host_tensor<float>(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  good.labels = {0, 1};
  good.classes = 2;
  good.check();
  auto broken = [&](auto change) {
    Dataset d = good;
    change(d);
    return message_of([&] { d.check(); });
  };
  expect_parts(broken([](Dataset& d) { d.samples.type.dtype = DType::f64; }), {"mine", "f64[2, 3]", "u8 or f32"});
  expect_parts(broken([](Dataset& d) { d.labels.push_back(1); }), {"f32[2, 3]", "3 labels"});
  expect_parts(broken([](Dataset& d) { d.labels.clear(); }), {"no sample"});
  expect_parts(broken([](Dataset& d) { d.samples.bytes.pop_back(); }), {"24 bytes", "23"});
  expect_parts(broken([](Dataset& d) { d.classes = 0; }), {"0 classes"});
  expect_parts(broken([](Dataset& d) { d.labels[1] = 2; }), {"data set mine", "label 2 of sample 1", "[0, 2)"});
  expect_parts(message_of([&] { good.check_within("label", {.end = 1}); }), {"label 1 of sample 1", "[0, 1)"});
}

}  // namespace
}  // namespace tutti::data
