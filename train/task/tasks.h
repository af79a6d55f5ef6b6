// Common tasks. A custom task is a function of (nn::Builder&, const Batch&), see train/task/task.h.
#pragma once
#include <functional>
#include <string>

#include "core/base/export.h"
#include "nn/modules.h"
#include "train/task/task.h"

namespace tutti {

struct TUTTI_API ClassificationOptions {
  std::string input = "input", label = "label";  ///< columns
  double label_smoothing = 0;
};
/// The cross entropy of the model's output [N, C] (or [N, C, d1, …]) against class ids; labels of -100 are ignored.
/// Metric "accuracy". Building the task throws Error(invalid) if the output has another shape or only one class.
TUTTI_API Task classification(nn::Layer model, ClassificationOptions options = {});

/// The outcome of classification for a model's output, for models that read several columns. Throws Error(invalid) if
/// output and labels do not fit.
TUTTI_API Outcome classified(Value output, const Batch& x, const ClassificationOptions& options = {});

/// The mean cross entropy of logits [N, C] (or [N, C, d1, …]) against class ids i32 [N] ([N, d1, …]), and the metric
/// "accuracy"; labels of -100 are ignored.
/// `class_weights`: of each label's loss; empty: 1.
TUTTI_API Outcome scored_classes(Value logits, Value labels, double label_smoothing = 0,
                                 const std::vector<double>& class_weights = {});
/// The labels of a batch with -100 for padding samples.
TUTTI_API Value ignore_padding(Value labels, const Batch& x);

struct TUTTI_API BinaryClassificationOptions {
  std::string input = "input", label = "label";  ///< columns
};
/// The binary cross entropy of the model's logits [N] or [N, 1] (or of the label's shape) against labels of 0 and 1,
/// integers or floats, elementwise. Metric "accuracy": a logit above 0 predicts 1.
TUTTI_API Task binary_classification(nn::Layer model, BinaryClassificationOptions options = {});

/// The outcome of binary_classification for a model's logits, for models that read several columns. Throws
/// Error(invalid) if they do not fit the labels.
TUTTI_API Outcome binary_classified(Value logits, const Batch& x, const BinaryClassificationOptions& options = {});

struct TUTTI_API RegressionOptions {
  std::string input = "input", target = "target";  ///< columns
  /// Elementwise loss of (output, target).
  std::function<Value(Value, Value)> loss = {};  ///< squared error unless given
};
/// The mean over samples and elements of an elementwise loss of the model's output against a float column of its shape.
/// If the column has statistics (data::Column::mean), the model and the loss work with standardised numbers, and the
/// output of prediction is in the target's unit. Metrics "mae" and "mse", from which evaluation makes "rmse" and "r2".
TUTTI_API Task regression(nn::Layer model, RegressionOptions options = {});

/// The outcome of regression for a model's output, for models that read several columns. Throws Error(invalid) if the
/// target has another shape.
TUTTI_API Outcome regressed(Value output, const Batch& x, const RegressionOptions& options = {});

/// Images in [0, 1] of dtype b.master(): u8 is scaled, floats are clamped. Throws Error(invalid) unless the column
/// holds images [C, H, W].
TUTTI_API Value pixels(const nn::Builder& b, const Batch& x, const std::string& column = "input");
/// Standard normal noise [N, sample…] of dtype b.master(): the data's column if it exists; else random noise from the
/// stream of that name, new at every training step and constant in evaluation.
TUTTI_API Value noise(nn::Builder& b, const Batch& x, const std::string& column, const Shape& sample);
/// The mean binary cross entropy of logits against pixels with as many elements per sample. The output is the sigmoid
/// of the logits, in the pixels' shape.
TUTTI_API Outcome reconstructed(Value logits, Value pixels, const Batch& x);
/// Trains a model that outputs logits of images to reproduce its input.
TUTTI_API Task autoencoding(nn::Layer model, const std::string& input = "input");

struct TUTTI_API SegmentationOptions {
  std::string input = "input", label = "label";  ///< columns
};
/// Classifies every pixel. The loss is the cross entropy of the model's output [N, C, d1, …] against labels i32 [N, d1,
/// …] plus the Dice loss of its softmax, as means over samples. Metrics "accuracy" of the pixels, and "dice": 2 |A ∩ B|
/// / (|A| + |B|) of the pixels A predicted as a class and the pixels B labelled with it, averaged over samples and the
/// classes that occur in either.
TUTTI_API Task segmentation(nn::Layer model, SegmentationOptions options = {});
/// The outcome of segmentation for a model's output. Throws Error(invalid) if it does not fit the labels.
TUTTI_API Outcome segmented(Value output, const Batch& x, const SegmentationOptions& options = {});

struct TUTTI_API LanguageModelOptions {
  std::string tokens = "tokens", next = "next";  ///< columns, i32 [N, T]
};
/// The cross entropy of the model's output [N, T, V] for tokens [N, T] against the tokens that follow. Metric
/// "accuracy" (of the next token).
TUTTI_API Task language_model(nn::Layer model, LanguageModelOptions options = {});
/// The outcome of language_model for a model's output. Throws Error(invalid) if it does not fit the next tokens.
TUTTI_API Outcome next_tokens(Value output, const Batch& x, const LanguageModelOptions& options = {});

}  // namespace tutti
