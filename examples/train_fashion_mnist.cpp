// Trains a small CNN on Fashion-MNIST, on the best device of this machine or the one given on the command line.
#include <tutti/tutti.h>
#include <cstdio>

using namespace tutti;

int main(int argc, char** argv) try {
  Device device = select_device(argc > 1 ? argv[1] : "auto");
  std::printf("%s: %s (%s)\n", device.id.c_str(), device.name.c_str(), device.reason.c_str());

  // clang-format off
  nn::Sequential model = {
      nn::Conv2d(32, 3, {.padding = 1}), nn::Relu(), nn::MaxPool2d(2),
      nn::Conv2d(64, 3, {.padding = 1}), nn::Relu(), nn::MaxPool2d(2),
      nn::Flatten(), nn::Linear(128), nn::Relu(), nn::Linear(10),
  };
  // clang-format on

  auto [train, test] = data::fashion_mnist();
  Trainer trainer(device, classification(model), {.optimizer = Adam{.lr = 1e-3}, .batch = 64, .seed = 1});

  for (int epoch = 1; epoch <= 3; ++epoch) {
    TrainResult t = trainer.train(train);   // one pass over the set
    EvalResult e = trainer.evaluate(test);  // evaluates the current weights on the device
    std::printf("epoch %d  loss %.3f  accuracy %.2f %%  %.0f samples/s\n", epoch, t.loss, 100 * e.metric("accuracy"),
                t.samples_per_second);
  }
  trainer.save("fashion.safetensors");
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n%s\n", e.what(), e.remedy.c_str());
  return 2;
}
