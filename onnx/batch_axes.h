// Where a model's inputs and outputs have the axis of the batch: seldom elsewhere than first, but not never.
#pragma once
#include <optional>
#include <string>

#include "onnx/model.h"

namespace tutti::onnx {

/// Whether an input is one integer, such as a sampling rate: a setting, the same for all samples of a run.
bool is_setting(const Port& input);

class BatchAxes {
 public:
  explicit BatchAxes(const Model& model);
  /// The only batch size that the model accepts; 0: any. It is 1 if an input has no axis of the batch, such as a scalar
  /// that is no setting.
  int64_t only() const { return only_; }
  /// The axis in an input: the one with the batch's symbol, else the first; none: the input belongs to one sample.
  std::optional<size_t> of(const Port& input) const;
  /// The axis with the batch's symbol; none if no axis has it.
  std::optional<size_t> named(const Port& port) const;

 private:
  std::string symbol_;  // "": no axis is named
  bool open_ = false;   // whether an input accepts any batch size
  int64_t only_ = 0;
};

}  // namespace tutti::onnx
