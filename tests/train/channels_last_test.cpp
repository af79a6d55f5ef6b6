// Models of images with channels-last convolutions compute what they compute without: the pass by itself, for no device
// here prefers that layout.
#include "graph/passes/channels_last.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/runtime/selector.h"
#include "graph/lower/legalize.h"
#include "graph/ops.h"
#include "graph/passes/cse.h"
#include "graph/passes/dce.h"
#include "graph/passes/simplify.h"
#include "graph/verify.h"
#include "tests/support/device_run.h"
#include "tests/support/model_step.h"
#include "tests/support/require.h"

namespace tutti {
namespace {

struct Case {
  const char* model;
  /// What is added: one per weight of more than one tap and channel, one per its gradient, and one for data of several
  /// channels.
  size_t transposes;
};

std::string label(const testing::TestParamInfo<Case>& info) { return info.param.model; }

size_t count(const Graph& g, const OpDef& op) {
  return static_cast<size_t>(std::ranges::count_if(g.nodes(), [&](const Node& n) { return n.op == &op; }));
}

class ChannelsLast : public testing::TestWithParam<Case> {
 protected:
  Device rendered, fast;
  void SetUp() override {
    try {
      rendered = select_device("opencl:0"), fast = select_device("onednn:0");
    } catch (const Error& e) {
      return test::skip_without("opencl", e.what());
    }
  }

  /// A step of the tiny model, in the ops of a rendered device.
  Graph step() {
    Session session(rendered);
    Legalizer legalizer(session);
    Graph g = test::training_step(GetParam().model, "tiny", 4, {.optimizer = Sgd{.lr = 0.1, .momentum = 0.9}});
    return dce(cse(simplify(legalizer.expand(dce(cse(simplify(g)))))));
  }
};

TEST_P(ChannelsLast, ComputesTheSame) {
  Graph before = step();
  Graph after = dce(cse(simplify(channels_last(before))));
  verify(after);
  EXPECT_EQ(count(after, conv2d_op) + count(after, conv2d_dx_op) + count(after, conv2d_dw_op), 0u);
  EXPECT_EQ(count(after, conv2d_nhwc_op), count(before, conv2d_op));
  EXPECT_EQ(count(after, transpose_op), count(before, transpose_op) + GetParam().transposes);
  std::map<std::string, Tensor> in = test::inputs_of(before), expected = test::run_on(fast, before, in),
                                got = test::run_on(fast, after, in);
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [name, t] : expected) EXPECT_LE(test::relative_error(got.at(name), t), 2e-4) << name;
}

INSTANTIATE_TEST_SUITE_P(Models, ChannelsLast,
                         testing::Values(Case{"cnn", 4}, Case{"autoencoder", 8}, Case{"orientation", 4},
                                         Case{"resnet18", 35}, Case{"resnet50", 15}, Case{"mobilenet_v2", 3},
                                         Case{"unet", 27}, Case{"diffusion", 148}, Case{"vit", 5}),
                         label);

}  // namespace
}  // namespace tutti
