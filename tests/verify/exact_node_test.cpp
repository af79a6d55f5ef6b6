// A node that asks for EXACT rounding: devices whose structured kernels round once, at the end, decline it.
#include <gtest/gtest.h>

#include "core/abi/growth.h"
#include "core/runtime/selector.h"
#include "graph/lower/lower.h"
#include "graph/ops.h"
#include "tests/support/device_run.h"

namespace tutti {
namespace {

/// The verdicts on a product, a transposition and a sum of two tensors, each asked for EXACT.
std::vector<Verdict> verdicts(const Device& device) {
  Graph g;
  Value a = g.feed("a", {DType::f32, {4, 4}}), b = g.feed("b", {DType::f32, {4, 4}});
  g.set_state("product", matmul(a, b));
  g.set_state("moved", transpose(a, {1, 0}));
  g.set_state("sum", a + b);
  Lowered lowered(g, {});
  TuttiProgram program = lowered.program();
  std::vector<TuttiNode> nodes;
  for (uint32_t k = 0; k < program.nodes.count; ++k) {
    nodes.push_back(element_of<TuttiNode>(program.nodes, k));
    nodes.back().flags |= TUTTI_NODE_EXACT;
  }
  program.nodes.at = nodes.data();
  return Session(device).check(program);
}

TEST(ExactNode, ProductsThatRoundOnceDecline) {
  std::vector<Device> devices = test::devices_under_test();
  devices.push_back(select_device("reference:0"));
  for (const Device& device : devices) {
    std::vector<Verdict> v = verdicts(device);
    ASSERT_EQ(v.size(), 3u);
    EXPECT_FALSE(v[0].accepted) << device.id;
    EXPECT_NE(v[0].reason.find("not round after every instruction"), std::string::npos) << v[0].reason;
    bool reference = device.plugin == "reference";  // it rounds once, whatever the op
    EXPECT_TRUE(v[1].accepted || reference) << device.id << ": " << v[1].reason;
    EXPECT_TRUE(v[2].accepted || reference) << device.id << ": " << v[2].reason;
  }
}

}  // namespace
}  // namespace tutti
