#include "onnx/export.h"

#include <algorithm>

#include "onnx/raise.h"
#include "onnx/write.h"
#include "train/run/resume.h"

namespace tutti::onnx {
Model exported_with(HostTensors states, const Task& task, const TrainerOptions& trained, const InputLayout& form,
                    const ExportOptions& options) {
  Programs plain(task, {.normalise = trained.normalise,
                        .precision = trained.precision == Precision::f64 ? Precision::f64 : Precision::f32});
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
  return exported_with(evaluation_weights(checkpoint, task, trained, form), task, trained, form, options);
}

std::string retrained(const std::string& original, const std::string& checkpoint, const Task& task,
                      const TrainerOptions& trained, const InputLayout& form, const std::string& path) {
  return with_weights(original, evaluation_weights(checkpoint, task, trained, form), path);
}

}  // namespace tutti::onnx
