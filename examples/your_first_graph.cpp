// Fits y = a x + b by gradient descent, with a custom graph: build, differentiate, update, compile, run.
#include <tutti/tutti.h>
#include <cstdio>

using namespace tutti;

int main(int argc, char** argv) try {
  // One step as a graph: the loss, its gradients, and the updates of a and b.
  Graph g;
  Value x = g.feed("x", {DType::f32, {4}}), y = g.feed("y", {DType::f32, {4}});
  Value a = g.state("a", {DType::f32, {}}), b = g.state("b", {DType::f32, {}});
  Value loss = mse(a * x + b, y);
  Values d = gradients(loss, {a, b});
  g.set_state("a", a - 0.1 * d[0]);
  g.set_state("b", b - 0.1 * d[1]);
  g.set_state("loss", loss);
  std::printf("%s\n", print(g).c_str());

  // Compile it for a device. States are stored on the device and start as zero.
  Runner runner(select_device(argc > 1 ? argv[1] : "auto"));
  auto step = runner.compile(g);
  step->prepare();
  HostTensors feeds = {{"x", host_tensor({0, 0.5, 1, 1.5})}, {"y", host_tensor({1, 2, 3, 4})}};  // y = 2 x + 1
  for (int i = 1; i <= 200; ++i) {
    runner.wait(step->run(feeds));
    if (i % 50 != 0) continue;
    std::printf("step %3d on %s: a %.4f  b %.4f  loss %.6f\n", i, runner.device().id.c_str(), runner.read("a").item(),
                runner.read("b").item(), runner.read("loss").item());
  }
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n%s\n", e.what(), e.remedy.c_str());
  return 2;
}
