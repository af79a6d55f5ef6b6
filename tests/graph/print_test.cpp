// The printed text of graphs against golden files. TUTTI_UPDATE=1 rewrites them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "graph/autodiff/autodiff.h"
#include "graph/lower/group.h"
#include "graph/ops.h"
#include "graph/passes/cse.h"
#include "graph/passes/dce.h"
#include "graph/passes/simplify.h"
#include "graph/print.h"
#include "train/step/optimizer.h"

namespace tutti {
namespace {

Graph small_step() {
  Graph g;
  Value x = g.feed("x", {DType::f32, {4, 3}}), labels = g.feed("labels", {DType::i32, {4}}),
        lr = g.feed("lr", {DType::f32, {}});
  Value step = g.state("step", {DType::i32, {}});
  Value y;
  {
    Graph::Scope scope(g, "fc");
    y = relu(matmul(x, g.state("fc.weight", {DType::f32, {5, 3}}), false, true) +
             g.state("fc.bias", {DType::f32, {5}}));
  }
  Value loss;
  {
    Graph::Scope scope(g, "loss");
    loss = cross_entropy(y, labels);
  }
  Values p = {g.latest("fc.weight"), g.latest("fc.bias")};
  apply_optimizer(g, Sgd{.momentum = 0.9}, {{.name = "fc.weight"}, {.name = "fc.bias"}}, gradients(loss, p), lr, step);
  g.set_state("loss", loss);
  return g;
}

void expect_golden(const std::string& file, const std::string& text) {
  std::string path = std::string(GOLDEN_DIR) + "/" + file;
  if (std::getenv("TUTTI_UPDATE")) std::ofstream(path) << text;
  std::ifstream in(path);
  std::stringstream golden;
  golden << in.rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

TEST(Print, StepAsBuilt) { expect_golden("step.txt", print(small_step())); }
TEST(Print, StepAfterThePasses) {
  expect_golden("step_passes.txt", print(group(dce(cse(simplify(small_step())))).graph));
}
TEST(Print, Dot) { expect_golden("step.dot", print_dot(dce(cse(simplify(small_step()))))); }

}  // namespace
}  // namespace tutti
