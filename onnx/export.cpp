#include "onnx/export.h"

#include <algorithm>

#include "data/files/checkpoint.h"
#include "onnx/raise.h"
#include "onnx/write.h"
#include "train/resume.h"
#include "train/weights.h"

namespace tutti::onnx {
namespace {

/// The states used in evaluation, by parameter name.
HostTensors states_of(Checkpoint& checkpoint, const ModelSignature& declared, const TrainerOptions& trained) {
  HostTensors all;
  for (const nn::Parameter& p : declared.parameters) {
    bool averaged = trained.ema > 0;
    all[p.name] = averaged ? *stored(checkpoint, average_state(p.name), p.type, StateRole::optimizer)
                           : checkpoint.tensors.at(p.name);
  }
  for (const nn::Parameter& p : declared.buffers) all[p.name] = checkpoint.tensors.at(p.name);
  return trained.lora ? merged(all, *trained.lora) : all;
}

}  // namespace

HostTensors evaluated_states(const std::string& checkpoint, const Task& task, const TrainerOptions& trained,
                             const InputLayout& form) {
  Checkpoint file = read_checkpoint(checkpoint);
  expect_possible(checkpoint, file);
  ModelSignature declared = Programs(task, program_options(trained)).declare(form);
  expect_same_model(file, declared);
  return states_of(file, declared, trained);
}

Model exported_with(HostTensors states, const Task& task, const TrainerOptions& trained, const InputLayout& form,
                    const ExportOptions& options) {
  Programs plain(task, {.precision = trained.precision == Precision::f64 ? Precision::f64 : Precision::f32,
                        .normalise = trained.normalise});
  InputLayout fed = form;
  fed.resident = false;
  std::string output = "output";
  while (states.contains(output) || std::ranges::any_of(fed.columns, [&](const auto& c) { return c.name == output; }))
    output += "_";
  auto of_batch = [&](int64_t n) {
    return raise(plain.prediction(fed, n), {{Programs::prediction_state(fed, n), output}});
  };
  // Primes that are unlikely to be other sizes of the model.
  constexpr int64_t one = 1009, another = 1013;
  Model model =
      options.batch ? of_batch(*options.batch) : with_open_batch(of_batch(one), of_batch(another), one, another);
  model.name = options.name;
  model.weights = std::move(states);
  return model;
}

Model exported(const std::string& checkpoint, const Task& task, const TrainerOptions& trained, const InputLayout& form,
               const ExportOptions& options) {
  return exported_with(evaluated_states(checkpoint, task, trained, form), task, trained, form, options);
}

std::string retrained(const std::string& original, const std::string& checkpoint, const Task& task,
                      const TrainerOptions& trained, const InputLayout& form, const std::string& path) {
  return with_weights(original, evaluated_states(checkpoint, task, trained, form), path);
}

}  // namespace tutti::onnx
