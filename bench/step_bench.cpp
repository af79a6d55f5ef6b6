// Whole training steps on every usable device: forward, loss, backward, optimizer. One benchmark per model and device.
#include <benchmark/benchmark.h>

#include "train/trainer.h"

namespace {

using namespace tutti;

struct Model {
  const char* name;
  nn::Sequential layers;
  Shape sample;
  int64_t batch;
};

const std::vector<Model>& models() {
  static const std::vector<Model> all = {
      {"mlp_1024_2048_512_10_b128",
       {nn::Linear(2048), nn::Relu(), nn::Linear(512), nn::Relu(), nn::Linear(10)},
       {1024},
       128},
      {"mlp_784_512_256_10_b64",
       {nn::Flatten(), nn::Linear(512), nn::Relu(), nn::Linear(256), nn::Relu(), nn::Linear(10)},
       {1, 28, 28},
       64},
      {"cnn_b64",
       {nn::Conv2d(32, 3, {.padding = 1}), nn::Relu(), nn::MaxPool2d(2), nn::Conv2d(64, 3, {.padding = 1}), nn::Relu(),
        nn::MaxPool2d(2), nn::Flatten(), nn::Linear(128), nn::Relu(), nn::Linear(10)},
       {1, 28, 28},
       64}};
  return all;
}

void steps(benchmark::State& state, const Model& model, const Device& device) {
  data::Split split = data::synthetic(model.sample, 10, 4096, 64);
  Trainer trainer(device, {.model = model.layers, .optimizer = Adam{.lr = 1e-6}, .batch = model.batch});
  trainer.train(split.train, 3);
  for (auto _ : state) trainer.train(split.train, 1);
  state.counters["samples/s"] =
      benchmark::Counter(static_cast<double>(state.iterations() * model.batch), benchmark::Counter::kIsRate);
  state.counters["bytes"] = static_cast<double>(trainer.peak_bytes());
}

}  // namespace

int main(int argc, char** argv) {
  for (const Device& device : Registry::instance().devices()) {
    if (!device.unusable.empty()) continue;
    for (const Model& model : models())
      benchmark::RegisterBenchmark((std::string(model.name) + "/" + device.id).c_str(), steps, model, device)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
