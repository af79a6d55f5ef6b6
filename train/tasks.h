// The usual tasks. A task of one's own is a function of (nn::Builder&, const Batch&), see train/task.h.
#pragma once
#include <functional>
#include <string>

#include "core/base/export.h"
#include "nn/modules.h"
#include "train/task.h"

namespace tutti {

struct TUTTI_API ClassificationOptions {
  std::string input = "input", label = "label";  ///< columns
  double label_smoothing = 0;
};
/// The cross entropy of the model's output [N, C] (or [N, C, d1, …]) against class numbers; labels of -100 do not
/// count. Metric "accuracy". Throws Error(invalid) while it is built where the output is of another shape, or where
/// there is one class alone.
TUTTI_API Task classification(nn::Layer model, ClassificationOptions options = {});

/// What classification makes of the model's output, for models that take more than one column: `labels` are the
/// column's. Throws Error(invalid) where they do not fit.
TUTTI_API Outcome classified(Value output, const Batch& x, const ClassificationOptions& options = {});

struct TUTTI_API RegressionOptions {
  std::string input = "input", target = "target";  ///< columns
  /// Of (output, target), element by element.
  std::function<Value(Value, Value)> loss = {};  ///< squared error unless given
};
/// The mean over samples and elements of an elementwise loss of the model's output against a float column of its shape.
TUTTI_API Task regression(nn::Layer model, RegressionOptions options = {});

struct TUTTI_API LanguageModelOptions {
  std::string tokens = "tokens", next = "next";  ///< columns, i32 [N, T]
};
/// The cross entropy of the model's output [N, T, V] for tokens [N, T] against the tokens that follow. Metrics
/// "accuracy" (of the next token).
TUTTI_API Task language_model(nn::Layer model, LanguageModelOptions options = {});

}  // namespace tutti
