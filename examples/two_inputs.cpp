// A model with two inputs and a custom loss: the angle between two points on a circle.
#include <tutti/tutti.h>
#include <cmath>
#include <cstdio>

using namespace tutti;

/// Pairs of points on a circle, (cos, sin) each, and the cosine of the angle between them.
data::TensorSet pairs(int64_t count) {
  std::vector<float> left, right, cosine;
  for (int64_t i = 0; i < count; ++i) {
    double s = 0.7 * static_cast<double>(i), t = 1.3 * static_cast<double>(i * i % 997);
    left.insert(left.end(), {static_cast<float>(std::cos(s)), static_cast<float>(std::sin(s))});
    right.insert(right.end(), {static_cast<float>(std::cos(t)), static_cast<float>(std::sin(t))});
    cosine.push_back(static_cast<float>(std::cos(s - t)));
  }
  return {"pairs",
          {{"left", host_tensor(DType::f32, {count, 2}, left)},
           {"right", host_tensor(DType::f32, {count, 2}, right)},
           {"cosine", host_tensor(DType::f32, {count}, cosine)}}};
}

int main(int argc, char** argv) try {
  nn::Sequential tower = {nn::Linear(32), nn::Tanh(), nn::Linear(8)};
  Task task([=](nn::Builder& b, const Batch& x) {
    // Applied to both inputs with shared weights.
    Value u = b("tower", tower, b.input(x["left"])), v = b("tower", tower, b.input(x["right"]));
    Value cosine = b.output(sum(u * v, {1})), weights = x.weights(cosine.dtype());
    Value far = abs(cosine - x["cosine"]), loss = select(far > 0.1, far - 0.05, 5.0 * far * far);
    return Outcome{.loss_sum = sum(loss * weights),
                   .weight = sum(weights),
                   .metrics = {{"within_0.1", sum(cast(far < 0.1, DType::f32) * weights), sum(weights)}},
                   .output = cosine};
  });
  Trainer trainer(select_device(argc > 1 ? argv[1] : "auto"), task, {.optimizer = Adam{.lr = 1e-2}, .batch = 50});
  data::TensorSet set = pairs(1000);
  for (int epoch = 0; epoch < 20; ++epoch) trainer.train(set);
  EvalResult e = trainer.evaluate(set);
  std::printf("loss %.4f, %.1f %% within 0.1\n", e.loss, 100 * e.metric("within_0.1"));
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n%s\n", e.what(), e.remedy.c_str());
  return 2;
}
