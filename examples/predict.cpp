// Inference alone: a saved model predicts, without an optimizer and its memory.
#include <tutti/tutti.h>
#include <algorithm>
#include <cstdio>

using namespace tutti;

/// The model is defined by the program; the checkpoint has its weights.
Task task() { return classification(nn::Sequential{nn::Linear(32), nn::Relu(), nn::Linear(4)}); }

/// Trains and saves what the rest of this program uses.
void train(const Device& device, const data::Dataset& set, const std::string& file) {
  Trainer trainer(device, task(), {.batch = 50});
  for (int epoch = 0; epoch < 3; ++epoch) trainer.train(set);
  trainer.save(file);
}

int main(int argc, char** argv) try {
  Device device = select_device(argc > 1 ? argv[1] : "auto");
  auto [set, test] = data::synthetic({16}, 4, 2000, 500);
  train(device, set, "model.safetensors");

  Trainer model(device, task(), {.inference = true});  // training it is an error
  model.load("model.safetensors");
  HostTensor input = data::read_samples(test, "input", std::vector<int32_t>{0, 1, 2, 3, 4});
  HostTensor label =
      host_tensor(DType::i32, {5}, std::vector<int32_t>(5));  // a task reads it; no prediction depends on it
  HostTensor scores = model.predict(data::TensorSet("new", {{"input", input}, {"label", label}}));
  std::vector<float> all = scores.as<float>();
  for (size_t i = 0; i < 5; ++i) {
    auto first = all.begin() + static_cast<std::ptrdiff_t>(4 * i);
    std::printf("sample %zu: class %td\n", i, std::max_element(first, first + 4) - first);
  }
  std::printf("accuracy of the test set: %.2f %%\n", 100 * model.evaluate(test).metric("accuracy"));
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n%s\n", e.what(), e.remedy.c_str());
  return 2;
}
