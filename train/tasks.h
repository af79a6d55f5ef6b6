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

/// The mean cross entropy of logits [N, C] (or [N, C, d1, …]) against class numbers i32 [N] ([N, d1, …]), and the
/// metric "accuracy"; labels of -100 do not count.
TUTTI_API Outcome scored_classes(Value logits, Value labels, double label_smoothing = 0);
/// Labels of a batch with -100 for the samples that only fill it up.
TUTTI_API Value ignore_padding(Value labels, const Batch& x);

struct TUTTI_API BinaryClassificationOptions {
  std::string input = "input", label = "label";  ///< columns
};
/// The binary cross entropy of the model's logits [N] or [N, 1] (or of the label's shape) against labels of 0 and 1,
/// integers or floats, elementwise. Metric "accuracy": a logit above 0 says 1.
TUTTI_API Task binary_classification(nn::Layer model, BinaryClassificationOptions options = {});

/// What binary_classification makes of the model's logits, for models that take more than one column. Throws
/// Error(invalid) where they do not fit the labels.
TUTTI_API Outcome binary_classified(Value logits, const Batch& x, const BinaryClassificationOptions& options = {});

struct TUTTI_API RegressionOptions {
  std::string input = "input", target = "target";  ///< columns
  /// Of (output, target), element by element.
  std::function<Value(Value, Value)> loss = {};  ///< squared error unless given
};
/// The mean over samples and elements of an elementwise loss of the model's output against a float column of its shape.
TUTTI_API Task regression(nn::Layer model, RegressionOptions options = {});

/// What regression makes of the model's output, for models that take more than one column. Throws Error(invalid) where
/// the target is of another shape.
TUTTI_API Outcome regressed(Value output, const Batch& x, const RegressionOptions& options = {});

/// Images as numbers in [0, 1] of b.master(): u8 scaled, floats limited to that. Throws Error(invalid) unless the
/// column holds images [C, H, W].
TUTTI_API Value pixels(const nn::Builder& b, const Batch& x, const std::string& column = "input");
/// Standard normal noise [N, sample…] of b.master(): the column where the data has one; else another one at every step
/// of training, drawn from the stream of that name, and always the same in evaluation.
TUTTI_API Value noise(nn::Builder& b, const Batch& x, const std::string& column, const Shape& sample);
/// What becomes of logits for pixels, of as many elements per sample: the mean binary cross entropy. The output are
/// their sigmoids, in the pixels' shape.
TUTTI_API Outcome reconstructed(Value logits, Value pixels, const Batch& x);
/// That of a model that makes logits of images: it learns to reproduce its input.
TUTTI_API Task autoencoding(nn::Layer model, const std::string& input = "input");

struct TUTTI_API SegmentationOptions {
  std::string input = "input", label = "label";  ///< columns
};
/// A class for every pixel: the cross entropy of the model's output [N, C, d1, …] against labels i32 [N, d1, …] plus
/// the Dice loss of its softmax, as means over samples. Metrics "accuracy" of the pixels, and "dice": 2 |A ∩ B| /
/// (|A| + |B|) of the positions A that were given a class and those B that have it, a mean over samples and the classes
/// that occur in either.
TUTTI_API Task segmentation(nn::Layer model, SegmentationOptions options = {});
/// What segmentation makes of the model's output. Throws Error(invalid) where it does not fit the labels.
TUTTI_API Outcome segmented(Value output, const Batch& x, const SegmentationOptions& options = {});

struct TUTTI_API LanguageModelOptions {
  std::string tokens = "tokens", next = "next";  ///< columns, i32 [N, T]
};
/// The cross entropy of the model's output [N, T, V] for tokens [N, T] against the tokens that follow. Metrics
/// "accuracy" (of the next token).
TUTTI_API Task language_model(nn::Layer model, LanguageModelOptions options = {});
/// What language_model makes of the model's output. Throws Error(invalid) where it does not fit the tokens that follow.
TUTTI_API Outcome next_tokens(Value output, const Batch& x, const LanguageModelOptions& options = {});

}  // namespace tutti
