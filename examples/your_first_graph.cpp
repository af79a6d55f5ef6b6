// Fits y = a x + b by gradient descent, with a graph of one's own: build, differentiate, update, compile, run.
#include <cstdio>
#include <tutti/tutti.h>

using namespace tutti;

int main(int argc, char** argv) try {
  // One step as a graph: the loss, its gradients, and what a and b become.
  Graph g;
  Value x = g.feed("x", {DType::f32, {4}}), y = g.feed("y", {DType::f32, {4}});
  Value a = g.state("a", {DType::f32, {}}), b = g.state("b", {DType::f32, {}});
  Value loss = mse(a * x + b, y);
  Values d = gradients(loss, {a, b});
  g.set_state("a", a - 0.1 * d[0]);
  g.set_state("b", b - 0.1 * d[1]);
  g.set_state("loss", loss);
  std::printf("%s\n", print(g).c_str());

  // Compile it for a device. State lives there; new state is zero.
  Session session(select_device(argc > 1 ? argv[1] : "auto"));
  Legalizer legalizer(session);
  Lowered lowered = compile_for_device(g, legalizer);
  Executable step = session.compile(lowered.program());
  step.prepare();

  for (int i = 1; i <= 200; ++i) {
    std::vector<void*> feeds = step.stage();  // in the order in which they were declared
    for (int k = 0; k < 4; ++k) {
      static_cast<float*>(feeds[0])[k] = static_cast<float>(k) / 2;
      static_cast<float*>(feeds[1])[k] = static_cast<float>(k) + 1;  // y = 2 x + 1
    }
    session.wait(step.run());
    if (i % 50 != 0) continue;
    float now[3];
    session.read("a", &now[0], 4);
    session.read("b", &now[1], 4);
    session.read("loss", &now[2], 4);
    std::printf("step %3d on %s: a %.4f  b %.4f  loss %.6f\n", i, session.device().id.c_str(), now[0], now[1], now[2]);
  }
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n%s\n", e.what(), e.remedy.c_str());
  return 2;
}
