// Whole training steps on every usable device: forward, loss, backward, optimizer. One benchmark per model and device;
// on GPUs also the larger models, and TF32 (CUDA) and bf16.
#include <benchmark/benchmark.h>

#include <string>
#include <utility>
#include <vector>

#include "nn/nets.h"
#include "train/trainer.h"

namespace {

using namespace tutti;

struct Model {
  const char* name;
  nn::Sequential layers;
  Shape sample;
  int64_t batch;
  int64_t classes = 10;
  Optimizer optimizer = Adam{.lr = 1e-6};
  bool large = false;  // for GPUs
};

const std::vector<Model>& models() {
  static const std::vector<Model> all = {
      {"mlp_1024_2048_512_10_b128",
       {nn::Linear(2048), nn::Relu(), nn::Linear(512), nn::Relu(), nn::Linear(10)},
       {1024},
       128},
      {"mlp_784_512_256_10_b64", nn::mlp({512, 256, 10}), {1, 28, 28}, 64},
      {"mlp_1024_2048_2048_10_gelu_b512",
       {nn::Linear(2048), nn::Gelu(), nn::Linear(2048), nn::Gelu(), nn::Linear(10)},
       {1024},
       512,
       10,
       AdamW{.lr = 1e-6},
       true},
      {"linear_4096_b1024", {nn::Linear(4096)}, {4096}, 1024, 4096, AdamW{.lr = 1e-6}, true},
      {"cnn_b64", nn::small_cnn(10), {1, 28, 28}, 64},
      {"cnn_b256", nn::small_cnn(10), {1, 28, 28}, 256, 10, Adam{.lr = 1e-6}, true}};
  return all;
}

void steps(benchmark::State& state, const Model& model, const Device& device, Precision precision) {
  data::Split split = data::synthetic(model.sample, model.classes, 4096, 64);
  TrainerOptions options{.model = model.layers, .optimizer = model.optimizer, .batch = model.batch};
  options.precision = precision;
  Trainer trainer(device, options);
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
    bool gpu = device.kind == DeviceKind::discrete || device.kind == DeviceKind::integrated;
    for (const Model& model : models())
      for (auto [precision, suffix] :
           {std::pair(Precision::f32, ""), std::pair(Precision::tf32, "_tf32"), std::pair(Precision::bf16, "_bf16")}) {
        if (!gpu && (model.large || precision != Precision::f32)) continue;
        if (precision == Precision::tf32 && device.plugin != "cuda") continue;
        benchmark::RegisterBenchmark((std::string(model.name) + suffix + "/" + device.id).c_str(), steps, model, device,
                                     precision)
            ->Unit(benchmark::kMillisecond)
            ->UseRealTime();
      }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
