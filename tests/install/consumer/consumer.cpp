// A user's program: trains a linear model on synthetic data with whatever device the installed engine finds.
#include <cmath>
#include <cstdio>

#include "tutti/tutti.h"

int main() try {
  tutti::Graph graph;  // an op's function that is compiled into the library, not inline
  tutti::Value rows = tutti::sum_to(graph.state("x", {tutti::DType::f32, {4, 3}}), {1, 3});
  if (rows.shape() != tutti::Shape{1, 3}) return 1;
  tutti::Device device = tutti::select_device("reference");
  auto [train, test] = tutti::data::synthetic({8}, 3, 96, 32);
  tutti::Trainer trainer(device, tutti::classification(tutti::nn::Linear(3)), {.batch = 32});
  double loss = trainer.train(train).loss;
  std::printf("%s: loss %.4f, accuracy %.2f\n", device.id.c_str(), loss, trainer.evaluate(test).metric("accuracy"));
  return std::isfinite(loss) && trainer.steps() == 3 ? 0 : 1;
} catch (const tutti::Error& e) {
  std::fprintf(stderr, "%s\n%s\n", e.what(), e.remedy.c_str());
  return 2;
}
