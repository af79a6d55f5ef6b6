// Exports a trained model to ONNX, for `tutti export`.
#pragma once
#include <optional>
#include <string>

#include "onnx/model.h"
#include "train/run/trainer.h"
#include "train/task/task.h"

namespace tutti::onnx {

struct ExportOptions {
  std::optional<int64_t> batch = {};  ///< samples per run; none: a dynamic batch size
  std::string name = "model";         ///< of the file's graph
};

/// The model that Trainer::predict computes for columns of the given layout, with the parameters of a checkpoint:
/// averaged ones if the run keeps them, adapters merged into their weights. Its inputs are the columns that the output
/// depends on, its output is "output", and parameters and buffers are initializers under their names. Precisions below
/// f32 become f32, the dtype of the parameters. Throws Error(invalid) if checkpoint and task do not match or the batch
/// size cannot be dynamic, Error(declined) listing ops without an ONNX equivalent.
Model exported(const std::string& checkpoint, const Task& task, const TrainerOptions& trained, const InputLayout& form,
               const ExportOptions& options = {});

/// The same as exported() with these parameters and buffers.
Model exported_with(HostTensors states, const Task& task, const TrainerOptions& trained, const InputLayout& form,
                    const ExportOptions& options = {});

/// The bytes of the ONNX file `original` with the parameters of a checkpoint that was trained from it. All else stays:
/// the names, types and open dimensions of inputs and outputs, nodes, metadata. External weights move into the file,
/// which is to be written to `path`. Throws as exported() does.
std::string retrained(const std::string& original, const std::string& checkpoint, const Task& task,
                      const TrainerOptions& trained, const InputLayout& form, const std::string& path);

}  // namespace tutti::onnx
