// An ONNX model as a task: what `tutti train model.onnx` and `tutti eval model.onnx` run.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "onnx/model.h"
#include "train/model.h"
#include "train/task.h"

namespace tutti::onnx {

struct TaskOptions {
  std::string loss = "cross_entropy";  ///< of the first output: one of all_losses(); "": none, it predicts alone
  /// Weights are parameters, and BatchNormalization trains; else they are constants.
  bool trainable = true;
};

/// The only batch that the model takes, where its inputs name one.
std::optional<int64_t> fixed_batch(const Model& model);
/// A task whose batch gives the model its inputs: the column "input" where it has one input, else the columns of the
/// inputs' names. The model's first axis is the batch. Throws Error(invalid) for another loss.
Task task(std::shared_ptr<const Model> model, const TaskOptions& options = {});
/// The file's weights that a trainable task of the model declares for data like `set`.
HostTensors weights(const Model& model, const Task& task, const data::Source& set);
/// The model of a file, as commands take it: with its weights, without data of its own.
ModelDef read_definition(const std::string& path);

}  // namespace tutti::onnx
