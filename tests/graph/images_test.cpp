// Functions of images against PyTorch: results and gradients in float64 (tests/golden/make_images.py).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "graph/autodiff/autodiff.h"
#include "graph/eval.h"
#include "graph/functions.h"
#include "graph/ops.h"
#include "tests/golden/golden_data.h"
#include "tests/support/error_of.h"

namespace tutti {
namespace {

using nlohmann::json;
using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

bool flag(const Attrs& a, const char* name) { return a.has(name) && a.i(name) != 0; }
bool counts_pad(const Attrs& a) { return !a.has("count_include_pad") || a.i("count_include_pad"); }
int64_t divisor(const Attrs& a) { return a.has("divisor_override") ? a.i("divisor_override") : 0; }
Ints list(const Attrs& a, const char* name, Ints otherwise) { return a.has(name) ? a.ints(name) : otherwise; }

template <class Options>
Options window_of(const Attrs& a) {
  return {.stride = a.ints("stride"),
          .padding = a.ints("padding"),
          .dilation = a.ints("dilation"),
          .groups = a.i("groups")};
}

template <class Options>
Options transposed_of(const Attrs& a) {
  return {.stride = a.ints("stride"),
          .padding = a.ints("padding"),
          .output_padding = a.ints("output_padding"),
          .dilation = a.ints("dilation"),
          .groups = a.i("groups")};
}

Pool1dOptions pool1d(const Attrs& a) {
  return {.kernel = a.i("kernel"),
          .stride = a.i("stride"),
          .padding = list(a, "padding", {0})[0],
          .dilation = list(a, "dilation", {1})[0],
          .count_include_pad = counts_pad(a),
          .ceil_mode = flag(a, "ceil_mode")};
}

template <class Options>
Options pool(const Attrs& a) {
  Ints zeros(a.ints("kernel").size()), ones(zeros.size(), 1);
  return {.kernel = a.ints("kernel"),
          .stride = list(a, "stride", {}),
          .padding = list(a, "padding", zeros),
          .dilation = list(a, "dilation", ones),
          .count_include_pad = counts_pad(a),
          .ceil_mode = flag(a, "ceil_mode"),
          .divisor_override = divisor(a)};
}

Value resized(Value x, const Attrs& a) {
  const Ints& size = a.ints("size");
  return interpolate(x, {.size = size,
                         .scale_factor = size.empty() ? a.reals("scale_factor") : Reals{},
                         .mode = a.text("mode"),
                         .align_corners = flag(a, "align_corners"),
                         .recompute_scale_factor = flag(a, "recompute_scale_factor")});
}

Value unpooled(Value x, const Attrs& a) {
  Values y = max_pool2d_with_index(x, pool<Pool2dOptions>(a));
  return max_unpool2d(y[0], y[1], {x.shape()[2], x.shape()[3]}, pool<Pool2dOptions>(a));
}

using Function = Value (*)(const Values& in, const Attrs& a);
const std::map<std::string, Function> functions = {
    {"adaptive_avg_pool", [](const Values& in, const Attrs& a) { return adaptive_avg_pool(in[0], a.ints("size")); }},
    {"adaptive_max_pool", [](const Values& in, const Attrs& a) { return adaptive_max_pool(in[0], a.ints("size")); }},
    {"avg_pool1d", [](const Values& in, const Attrs& a) { return avg_pool1d(in[0], pool1d(a)); }},
    {"avg_pool2d", [](const Values& in, const Attrs& a) { return avg_pool2d(in[0], pool<Pool2dOptions>(a)); }},
    {"avg_pool3d", [](const Values& in, const Attrs& a) { return avg_pool3d(in[0], pool<Pool3dOptions>(a)); }},
    {"channel_shuffle", [](const Values& in, const Attrs& a) { return channel_shuffle(in[0], a.i("groups")); }},
    {"circular_pad", [](const Values& in, const Attrs& a) { return circular_pad(in[0], a.ints("amounts")); }},
    {"constant_pad",
     [](const Values& in, const Attrs& a) { return constant_pad(in[0], a.ints("amounts"), a.f("value")); }},
    {"conv1d",
     [](const Values& in, const Attrs& a) {
       return conv1d(in[0], in[1], {a.i("stride"), a.i("padding"), a.i("dilation"), a.i("groups")});
     }},
    {"conv3d", [](const Values& in, const Attrs& a) { return conv3d(in[0], in[1], window_of<Conv3dOptions>(a)); }},
    {"conv_same",
     [](const Values& in, const Attrs& a) { return conv_same(in[0], in[1], a.ints("dilation"), a.i("groups")); }},
    {"conv_transpose1d",
     [](const Values& in, const Attrs& a) {
       return conv_transpose1d(in[0], in[1],
                               {a.i("stride"), a.i("padding"), a.i("output_padding"), a.i("dilation"), a.i("groups")});
     }},
    {"conv_transpose2d",
     [](const Values& in, const Attrs& a) {
       return conv_transpose2d(in[0], in[1], transposed_of<ConvTranspose2dOptions>(a));
     }},
    {"conv_transpose3d",
     [](const Values& in, const Attrs& a) {
       return conv_transpose3d(in[0], in[1], transposed_of<ConvTranspose3dOptions>(a));
     }},
    {"grid_sample",
     [](const Values& in, const Attrs& a) {
       return grid_sample(in[0], in[1], {a.text("mode"), a.text("padding_mode"), flag(a, "align_corners")});
     }},
    {"interpolate", [](const Values& in, const Attrs& a) { return resized(in[0], a); }},
    {"lp_pool1d", [](const Values& in, const Attrs& a) { return lp_pool1d(in[0], a.f("p"), pool1d(a)); }},
    {"lp_pool2d", [](const Values& in, const Attrs& a) { return lp_pool2d(in[0], a.f("p"), pool<Pool2dOptions>(a)); }},
    {"max_pool1d", [](const Values& in, const Attrs& a) { return max_pool1d(in[0], pool1d(a)); }},
    {"max_pool2d", [](const Values& in, const Attrs& a) { return max_pool2d(in[0], pool<Pool2dOptions>(a)); }},
    {"max_pool3d", [](const Values& in, const Attrs& a) { return max_pool3d(in[0], pool<Pool3dOptions>(a)); }},
    {"max_unpool2d", [](const Values& in, const Attrs& a) { return unpooled(in[0], a); }},
    {"pixel_shuffle", [](const Values& in, const Attrs& a) { return pixel_shuffle(in[0], a.i("factor")); }},
    {"reflection_pad", [](const Values& in, const Attrs& a) { return reflection_pad(in[0], a.ints("amounts")); }},
    {"replication_pad", [](const Values& in, const Attrs& a) { return replication_pad(in[0], a.ints("amounts")); }},
    {"pixel_unshuffle", [](const Values& in, const Attrs& a) { return pixel_unshuffle(in[0], a.i("factor")); }},
};

const json& cases() {
  static const json all = [] {
    std::ifstream in(GOLDEN_DIR "/images.json");
    return json::parse(in);
  }();
  return all;
}

/// One case as a graph: its result, and its gradients to the inputs.
struct Built {
  Graph graph;
  std::map<std::string, Tensor> given;
  Values values;
  std::vector<const json*> wanted;

  explicit Built(const json& c) {
    auto feed = [&](const std::string& name, const json& t) {
      Tensor x = golden::to_tensor(t);
      Value v = graph.feed(name, x.type);
      given.emplace(name, std::move(x));
      return v;
    };
    Values in;
    for (const json& t : c.at("inputs")) in.push_back(feed(fmt::format("x{}", in.size()), t));
    Value y = functions.at(c.at("op").get<std::string>())(in, golden::to_attrs(c.at("attrs")));
    values = gradients({y}, {feed("d", c.at("cotangents")[0])}, in, Unreached::zeros);
    values.push_back(y);
    for (const json& t : c.at("gradients")) wanted.push_back(&t);
    wanted.push_back(&c.at("results")[0]);
  }
};

class Images : public testing::TestWithParam<std::string> {};

TEST_P(Images, MatchPyTorch) {
  int count = 0;
  for (const json& c : cases()) {
    if (c.at("op") != GetParam()) continue;
    ++count;
    std::string what = fmt::format("{} {}", c.at("op").get<std::string>(), c.at("attrs").dump());
    try {
      Built b(c);
      std::vector<Tensor> got = evaluate(b.graph, b.given, b.values);
      for (size_t k = 0; k < got.size(); ++k)
        EXPECT_EQ(golden::difference(got[k], golden::to_tensor(*b.wanted[k]), 1e-9), "")
            << what << (k + 1 < got.size() ? fmt::format(": gradient {}", k) : ": result");
    } catch (const Error& e) {
      ADD_FAILURE() << what << ": " << e.what();
    }
  }
  EXPECT_GT(count, 0);
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, function] : functions) all.push_back(name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Functions, Images, testing::ValuesIn(names()), [](const auto& info) { return info.param; });

class ImageFunctions : public testing::Test {
 protected:
  Graph g;
  Value x = g.feed("x", {DType::f32, {2, 4, 6, 5}});
  Value line = g.feed("line", {DType::f32, {2, 4, 6}});
  size_t nodes_of(const std::function<void()>& build) {
    size_t before = g.nodes().size();
    build();
    return g.nodes().size() - before;
  }
};

TEST_F(ImageFunctions, PlainPoolsAreOneNodeWithoutNewAttributes) {
  EXPECT_EQ(nodes_of([&] { max_pool2d(x, {.kernel = {2, 2}}); }), 1u);
  EXPECT_EQ(nodes_of([&] { avg_pool2d(x, {.kernel = {3, 3}, .padding = {1, 1}}); }), 1u);
  EXPECT_EQ(nodes_of([&] { max_pool2d(x, {.kernel = {2, 5}, .ceil_mode = true}); }), 1u) << "every window fits";
  EXPECT_EQ(nodes_of([&] { adaptive_avg_pool(x, {3, 5}); }), 1u);
  for (const auto& [name, value] : g.nodes()[1].attrs)
    EXPECT_TRUE((std::set<std::string>{"kernel", "stride", "padding", "count_include_pad"}.contains(name))) << name;
}

TEST_F(ImageFunctions, AConvolutionAlongOneAxisCopiesNothing) {
  Value w = g.feed("w", {DType::f32, {3, 4, 2}}), w3 = g.feed("w3", {DType::f32, {3, 4, 2, 1, 1}});
  Value cube = g.feed("cube", {DType::f32, {2, 4, 3, 2, 2}});
  auto ops_of = [&](const std::function<void()>& build) {
    size_t before = g.nodes().size();
    build();
    std::vector<std::string> ops;
    for (size_t k = before; k < g.nodes().size(); ++k) ops.push_back(g.nodes()[k].op->name);
    return ops;
  };
  EXPECT_THAT(ops_of([&] { conv1d(line, w); }), ElementsAre("reshape", "reshape", "conv2d", "reshape"));
  EXPECT_THAT(ops_of([&] { conv3d(cube, w3); }), ElementsAre("reshape", "reshape", "conv2d", "reshape"));
}

TEST_F(ImageFunctions, TwoByteFloatsAreRoundedOnce) {
  Value narrow = g.feed("narrow", {DType::bf16, {1, 1, 5, 5}});
  for (Value y : {avg_pool2d(narrow, {.ceil_mode = true}), adaptive_avg_pool(narrow, {3, 3}),
                  interpolate(narrow, {.size = {7, 7}, .mode = "bilinear"})}) {
    EXPECT_EQ(y.dtype(), DType::bf16);
    const Node& last = g.nodes()[g.info(y.id()).producer];
    EXPECT_EQ(last.op->name, "cast");
    EXPECT_EQ(g.value(last.inputs[0]).dtype(), DType::f32);
  }
}

TEST_F(ImageFunctions, NearestByWholeFactorsReadsNoIndex) {
  interpolate(x, {.scale_factor = {2, 3}});
  for (const Node& n : g.nodes()) EXPECT_NE(n.op->name, "gather");
}

TEST_F(ImageFunctions, ErrorsNameWhatWasExpected) {
  Value w = g.feed("w", {DType::f32, {4, 2, 2, 2}});
  EXPECT_THAT(error_of([&] { conv1d(x, w); }), HasSubstr("conv1d: [2, 4, 6, 5] has 4 dimensions, expected 3"));
  EXPECT_THAT(error_of([&] { conv3d(x, w); }), HasSubstr("[N, C, D, H, W]"));
  EXPECT_THAT(error_of([&] { conv_transpose2d(x, w, {.stride = {2}}); }), HasSubstr("stride is [2]"));
  EXPECT_THAT(error_of([&] { conv_same(x, w, {0, 1}); }), HasSubstr("dilation is [0, 1]"));
  EXPECT_THAT(error_of([&] { max_pool1d(x); }), HasSubstr("max_pool1d"));
  EXPECT_THAT(error_of([&] {
                max_pool2d(x, {.padding = {2, 0}, .ceil_mode = true});
              }),
              HasSubstr("padding 2 is more than half of the window, which spans 2"));
  EXPECT_THAT(error_of([&] { avg_pool2d(x, {.divisor_override = -1}); }), HasSubstr("divisor_override"));
  EXPECT_THAT(error_of([&] { adaptive_avg_pool(x, {2}); }), HasSubstr("does not match x [2, 4, 6, 5]"));
  EXPECT_THAT(error_of([&] { adaptive_max_pool(x, {2, 0}); }), HasSubstr("cannot pool [2, 4, 6, 5] to size [2, 0]"));
  EXPECT_THAT(error_of([&] { lp_pool2d(x, 0); }), HasSubstr("power"));
  EXPECT_THAT(error_of([&] { interpolate(x, {}); }), HasSubstr("0 sizes and 0 scale factors"));
  EXPECT_THAT(error_of([&] { interpolate(x, {.size = {2, 2}, .mode = "linear"}); }), HasSubstr("bilinear or bicubic"));
  EXPECT_THAT(error_of([&] {
                interpolate(x, {.size = {2, 2}, .align_corners = true});
              }),
              HasSubstr("omit align_corners"));
  EXPECT_THAT(error_of([&] { interpolate(x, {.scale_factor = {0.1}}); }), HasSubstr("cannot be resized to 0"));
  EXPECT_THAT(error_of([&] { grid_sample(x, w); }), HasSubstr("x [2, 4, 6, 5] and grid [4, 2, 2, 2]"));
  EXPECT_THAT(error_of([&] { pixel_shuffle(x, 3); }),
              HasSubstr("pixel_shuffle: x [2, 4, 6, 5] cannot be divided by factor 3"));
  EXPECT_THAT(error_of([&] { channel_shuffle(x, 3); }), HasSubstr("groups that divides C"));
  EXPECT_THAT(error_of([&] { constant_pad(x, {1}); }), HasSubstr("two values per axis"));
  EXPECT_THAT(error_of([&] { constant_pad(x, {-3, -3}); }), HasSubstr("removes more than the 5 elements"));
  EXPECT_THAT(error_of([&] { reflection_pad(x, {5, 0}); }), HasSubstr("use at most 4"));
  EXPECT_THAT(error_of([&] { circular_pad(x, {0, 6}); }), HasSubstr("use at most 5"));
  Value nothing = g.feed("nothing", {DType::f32, {2, 0}});
  EXPECT_THAT(error_of([&] { replication_pad(nothing, {0, 1}); }), HasSubstr("use at most 0"));
  EXPECT_EQ(constant_pad(nothing, {0, 1}).shape(), (Shape{2, 1}));
}

}  // namespace
}  // namespace tutti
