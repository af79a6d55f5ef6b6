// An ONNX model as a task, for `tutti train model.onnx` and `tutti eval model.onnx`.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onnx/model.h"
#include "train/task/model.h"
#include "train/task/task.h"

namespace tutti::onnx {

/// Names and shapes [samples, …] of several outputs that are one: flattened per sample, one after the other.
using JoinedOutputs = std::vector<std::pair<std::string, Shape>>;

struct TaskOptions {
  std::string loss = "cross_entropy";  ///< of the first output: one of all_losses(); "": none, the task only predicts
  /// Weights are parameters and BatchNormalization is in training mode; otherwise weights are constants.
  bool trainable = true;
  std::map<std::string, HostTensor> settings = {};  ///< see settings_of()
  /// If given, the task's output is every output that is a tensor of numbers, joined; it receives what they are.
  std::shared_ptr<JoinedOutputs> joined = {};
};

/// The only batch size that the model accepts, if its inputs fix one.
std::optional<int64_t> fixed_batch(const Model& model);
/// The values of the inputs that are settings (see is_setting): they must be the same for all samples of the data. A
/// task is built for them, so shapes and branches may depend on them; it does not train.
std::map<std::string, HostTensor> settings_of(const Model& model, const data::Source& set);
/// A task that reads the model's inputs from a batch: the column "input" if the model has one input, else the columns
/// named like the inputs. Columns and results have the batch first, whatever the model has. Throws Error(invalid) for
/// an unknown loss.
Task task(std::shared_ptr<const Model> model, const TaskOptions& options = {});
/// A prediction of joined outputs as one tensor per output, of its dtype.
HostTensors parted(const HostTensor& prediction, const JoinedOutputs& joined);
/// The file's weights for the parameters and buffers that a trainable task of the model declares for data like `set`.
HostTensors weights(const Model& model, const Task& task, const data::Source& set);
/// The model in a file as a ModelDef for the commands: with its weights, without its own data.
ModelDef read_definition(const std::string& path);

}  // namespace tutti::onnx
