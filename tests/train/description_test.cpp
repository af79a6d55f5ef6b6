// Descriptions as a library reads them: names of parameters, sizes from the data, and texts that are damaged anywhere.
#include "train/io/description.h"

#include <algorithm>
#include <random>

#include "data/dataset.h"
#include "tests/train/files.h"
#include "train/step/programs.h"

namespace tutti {
namespace {

using test::expect_parts;
using test::message_of;

const std::string net = R"({
  "name": "net", "input": [3, 8, 8], "loss": "cross_entropy", "batch": 4, "lr": 0.01,
  "layers": [
    {"Conv2d": {"out_channels": 4, "kernel_size": 3, "padding": 1, "bias": false}}, "BatchNorm2d", "ReLU",
    {"residual": [{"Conv2d": {"out_channels": 4, "kernel_size": 3, "padding": 1}}, "GELU"]},
    {"concat": {"branches": [{"MaxPool2d": {"kernel_size": 2}}, [{"AvgPool2d": {"kernel_size": 2}}, "Tanh"]], "dim": 1}},
    {"repeat": {"times": 2, "layers": [{"Conv2d": {"out_channels": 8, "kernel_size": 1}}, "SiLU"]}},
    "Flatten", {"Dropout": {"p": 0.5}}, {"name": "head", "Linear": {"bias": false}}]})";

std::vector<std::string> names(const std::string& text, const std::string& data) {
  ModelDef m = described_model(text, "net.json");
  auto set = data::open_data(data).train;
  std::vector<std::string> all;
  ModelSignature d = Programs(m.task(ModelOptions(), *set)).declare(layout_of(*set, "train", false));
  for (const nn::Parameter& p : d.parameters) all.push_back(p.name + " " + to_string(p.type.shape));
  return all;
}

TEST(Description, NamesAndSizes) {
  EXPECT_EQ(names(net, "synthetic:3x8x8:7:16:4"),
            (std::vector<std::string>{"0.weight [4, 3, 3, 3]", "1.weight [4]", "1.bias [4]", "3.0.weight [4, 4, 3, 3]",
                                      "3.0.bias [4]", "5.0.0.weight [8, 8, 1, 1]", "5.0.0.bias [8]",
                                      "5.1.0.weight [8, 8, 1, 1]", "5.1.0.bias [8]", "head.weight [7, 128]"}));
  ModelDef m = described_model(net, "net.json");
  EXPECT_EQ(m.name, "net");
  EXPECT_EQ(m.size("").batch, 4);
  EXPECT_EQ(m.size("").lr, 0.01);
  EXPECT_EQ(m.optimizer, "adam");
  EXPECT_EQ(m.text, net);
  EXPECT_EQ(m.synthetic(ModelOptions(), 100), "synthetic:3x8x8:10:100:64")
      << "where the data say how many classes, ten are generated";
  EXPECT_FALSE(m.context);
}

TEST(Description, TokensAreCheckedAgainstTheSmallestEmbedding) {
  std::string text = R"({"loss": "language_model", "input": [5], "layers": [
    {"sum": [{"Embedding": {"num_embeddings": 12, "embedding_dim": 4}}, {"Embedding": {"num_embeddings": 9, "embedding_dim": 4}}]},
    {"Linear": {"out_features": 20}}]})";
  ModelDef m = described_model(text, "net.json");
  EXPECT_EQ(m.context(ModelOptions()), 5);
  EXPECT_EQ(m.context({.context = 7}), 7);
  auto set = data::open_data(m.synthetic(ModelOptions(), 4), {.context = 5}).train;
  EXPECT_EQ(set->column("tokens").classes, 9);
  ModelSignature d = Programs(m.task(ModelOptions(), *set)).declare(layout_of(*set, "train", false));
  EXPECT_EQ(d.limits.at("tokens").end, 9);
  EXPECT_EQ(d.limits.at("next").end, 20);
}

/// Every text that differs in a letter, lacks a part or has one twice is taken, or refused with a message.
TEST(Description, DamagedTextsAreRefusedOrTaken) {
  auto set = data::open_data("synthetic:3x8x8:7:16:4").train;
  std::mt19937 random(1);
  size_t refused = 0, tries = 1500;
  for (size_t i = 0; i < tries; ++i) {
    std::string text = net;
    for (int changes = 0; changes < 1 + static_cast<int>(i % 3); ++changes) {
      size_t at = random() % text.size(), length = std::min<size_t>(1 + random() % 20, text.size() - at);
      switch (random() % 4) {
        case 0: text[at] = "\"{}[]:,0123456789eE-.ntf \\\x80"[random() % 27]; break;
        case 1: text.erase(at, length); break;
        case 2: text.insert(random() % text.size(), text.substr(at, length)); break;
        default: text.insert(at, 1, static_cast<char>(random() % 256));
      }
      if (text.empty()) text = " ";
    }
    try {
      ModelDef m = described_model(text, "net.json");
      Programs(m.task(ModelOptions(), *set)).declare(layout_of(*set, "train", false));
    } catch (const Error& e) {
      EXPECT_EQ(e.code, Code::invalid) << text;
      expect_parts(e.what(), {"net.json"});
      ++refused;
    }
  }
  EXPECT_GT(refused, tries / 2);
  EXPECT_LT(refused, tries);
}

TEST(Description, LayersOfEveryKindSayWhatTheyAreGiven) {
  expect_parts(
      message_of([] { names(R"({"layers": [{"LSTM": {"hidden_size": 4}}, "Linear"]})", "synthetic:6:3:16:4"); }),
      {"net.json: layers[0] (LSTM), with input f32[1, 6]", "[N, T, features]"});
  expect_parts(message_of([] {
                 names(R"({"layers": ["Flatten", {"Unflatten": {"dim": 1, "unflattened_size": [5]}}]})",
                       "synthetic:6:3:16:4");
               }),
               {"layers[1] (Unflatten)", "an axis of size 6"});
  expect_parts(message_of([] {
                 names(R"({"layers": [{"repeat": {"times": 2, "layers": [[{"MaxPool2d": {"kernel_size": 2}}]]}}]})",
                       "synthetic:6:3:16:4");
               }),
               {"layers[0].layers[0][0] (MaxPool2d), with input f32[1, 6]"});
}

/// A short text can ask for a model that takes hours to build, even of layers that add no node.
TEST(Description, VastModelsAreRefused) {
  auto says = [](const std::string& layer) {
    return message_of([&] { described_model(R"({"layers": [)" + layer + "]}", "net.json"); });
  };
  auto repeated = [](const std::string& times, const std::string& layers) {
    return R"({"repeat": {"times": )" + times + R"(, "layers": )" + layers + "}}";
  };
  for (const char* layers : {R"("Identity")", "[[]]", R"([{"Dropout": {}}, "ReLU"])"})
    expect_parts(says(repeated("2000000000", layers)), {"layers[0] (repeat)", "more than 200000 layers"});
  std::string nested = repeated("1000", "[" + repeated("2000", R"("Identity")") + "]");
  expect_parts(says("\"ReLU\", " + nested), {"layers[1] (repeat)", "more than 200000 layers"});
  expect_parts(says(R"({"LSTM": {"hidden_size": 4, "num_layers": 2000000000}})"),
               {"layers[0] (LSTM)", "num_layers is 2000000000"});
  described_model(R"({"layers": [)" + repeated("1000", R"("Identity")") + "]}", "net.json");
}

}  // namespace
}  // namespace tutti
