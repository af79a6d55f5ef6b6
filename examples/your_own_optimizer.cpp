// An optimizer of one's own: a record that the library does not know, used like a built-in one.
#include <tutti/tutti.h>
#include <cmath>
#include <cstdio>

using namespace tutti;

/// Zhuang et al., "AdaBelief" (2020). A record has a name, which checkpoints contain, the base learning rate `lr`, its
/// hyperparameters, and the update of one parameter.
struct AdaBelief {
  static constexpr const char* name = "adabelief";
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;

  std::vector<Hyperparameter> hyperparameters() {
    return {{"lr", "Learning rate", &lr},
            {"beta1", "Decay of the first moment", &beta1},
            {"beta2", "Decay of the second moment", &beta2},
            {"epsilon", "Keeps the update finite", &epsilon},
            {"weight-decay", "Weight decay", &weight_decay}};
  }
  /// May be left out. Throws Error(invalid).
  void check() const {
    check_share("beta1", beta1);
    check_share("beta2", beta2);
  }
  /// May be left out: values that are computed once for all parameters. `step` is the number of steps done before.
  Values shared(Graph&, Value rate, Value step) const {
    Value t = cast(step, rate.dtype()) + 1;
    return {-expm1(t * std::log(beta1)), -expm1(t * std::log(beta2))};
  }
  /// One node of ops over the parameter u.p, its gradient u.d and its moments, for every device.
  void update(const Update& u) const {
    Value m = beta1 * u.moment("m") + (1 - beta1) * u.d;
    Value s = beta2 * u.moment("s") + (1 - beta2) * (u.d - m) * (u.d - m) + epsilon;
    u.set_moment("m", m);
    u.set_moment("s", s);
    Value kept = u.p * (1 - u.lr * u.decay(weight_decay));
    u.set_parameter(kept - u.lr * (m / u.shared[0]) / (sqrt(s / u.shared[1]) + epsilon));
  }
};

int main(int argc, char** argv) try {
  Device device = select_device(argc > 1 ? argv[1] : "auto");
  nn::Sequential model = {nn::Linear(32), nn::Tanh(), nn::Linear(4)};
  auto [train, test] = data::synthetic({16}, 4, 2000, 500);
  Trainer trainer(device, classification(model), {.optimizer = AdaBelief{.lr = 1e-2}, .batch = 50});
  for (int epoch = 1; epoch <= 3; ++epoch) {
    double loss = trainer.train(train).loss;
    std::printf("epoch %d  loss %.4f  accuracy %.2f %%\n", epoch, loss,
                100 * trainer.evaluate(test).metric("accuracy"));
  }
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n%s\n", e.what(), e.remedy.c_str());
  return 2;
}
