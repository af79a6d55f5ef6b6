// An ONNX model as a task, for `tutti train model.onnx` and `tutti eval model.onnx`.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "onnx/model.h"
#include "train/model.h"
#include "train/task.h"

namespace tutti::onnx {

struct TaskOptions {
  std::string loss = "cross_entropy";  ///< of the first output: one of all_losses(); "": none, the task only predicts
  /// Weights are parameters and BatchNormalization is in training mode; otherwise weights are constants.
  bool trainable = true;
};

/// The only batch size that the model accepts, if its inputs fix one.
std::optional<int64_t> fixed_batch(const Model& model);
/// A task that reads the model's inputs from a batch: the column "input" if the model has one input, else the columns
/// named like the inputs. The first axis is the batch. Throws Error(invalid) for an unknown loss.
Task task(std::shared_ptr<const Model> model, const TaskOptions& options = {});
/// The file's weights for the parameters and buffers that a trainable task of the model declares for data like `set`.
HostTensors weights(const Model& model, const Task& task, const data::Source& set);
/// The model in a file as a ModelDef for the commands: with its weights, without its own data.
ModelDef read_definition(const std::string& path);

}  // namespace tutti::onnx
