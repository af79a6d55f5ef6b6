// A trained model as an ONNX model: what `tutti export` writes.
#pragma once
#include <optional>
#include <string>

#include "onnx/model.h"
#include "train/task.h"
#include "train/trainer.h"

namespace tutti::onnx {

struct ExportOptions {
  std::optional<int64_t> batch = {};  ///< samples per run; any number unless given
  std::string name = "model";         ///< of the graph in the file
};

/// What Trainer::predict computes of columns like the form's, with the parameters of a checkpoint: averaged ones where
/// the run keeps them, adapters merged into their weights. The columns that it hangs on are the inputs, "output" is the
/// output, and the parameters and buffers are the initializers, under their names. Precisions below f32 become f32,
/// which is what the parameters are. Throws Error(invalid) where checkpoint and task do not fit, or the batch cannot
/// stay open; Error(declined) that lists ops without a form in ONNX.
Model exported(const std::string& checkpoint, const Task& task, const TrainerOptions& trained, const InputLayout& form,
               const ExportOptions& options = {});

}  // namespace tutti::onnx
