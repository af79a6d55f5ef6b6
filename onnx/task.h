// An ONNX model as a task: what `tutti train model.onnx` and `tutti eval model.onnx` run.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onnx/model.h"
#include "train/task.h"
#include "train/trainer.h"

namespace tutti::onnx {

struct TaskOptions {
  /// Of the first output: "cross_entropy" against the column "label", "bce" (of logits) against "label", or "mse"
  /// against "target", "next_token" (of [N, T, V]) against "next"; "": none, it predicts alone.
  std::string loss = "cross_entropy";
  /// Weights are parameters, and BatchNormalization trains; else they are constants.
  bool trainable = true;
};

/// The only batch that the model takes, where its inputs name one.
std::optional<int64_t> fixed_batch(const Model& model);
/// The losses that a task has.
std::vector<std::string> losses();
/// A task whose batch gives the model its inputs: the column "input" where it has one input, else the columns of the
/// inputs' names. The model's first axis is the batch. Throws Error(invalid) for another loss.
Task task(std::shared_ptr<const Model> model, const TaskOptions& options = {});
/// Gives a trainer of a trainable task the model's weights, where it has made up its own for data like `set`.
void start(Trainer& trainer, const Model& model, const data::Source& set);

}  // namespace tutti::onnx
