// What can be measured: training steps of models, and single ops with their shapes.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "bench/result.h"
#include "train/trainer.h"

namespace tutti::bench {

/// One op of a given shape.
struct OpCase {
  std::string op;
  Shape shape;
  std::string shape_text() const;  ///< "512x512x512"
};

/// What can stand in an OpCase: its shape's meaning and the shapes taken where none is named.
struct OpKind {
  std::string_view name, shape_means;
  Shape usual, quick;
  /// One run's graph over states; floats are to be filled with numbers in (0, 1), i32 with numbers below shape[0].
  Graph (*build)(const Shape& shape, DType dtype);
};

/// Every op that can be measured, in the order in which the default set has them.
const std::vector<OpKind>& op_kinds();
/// "matmul", or "matmul:256x512x128" with a shape. Throws Error(invalid) listing the ops, or naming what the shape
/// means.
OpCase parse_op(const std::string& text, bool quick);
Graph build(const OpCase& op, DType dtype);

/// The training step of one model.
struct ModelCase {
  std::string name;    ///< "mlp"
  std::string detail;  ///< "784-512-256-10, batch 64"
  Task task;
  TrainerOptions options;  ///< but for the precision
  std::shared_ptr<const data::Source> set;
  std::string peer;  ///< a JSON object that tells a peer to build the same
};

/// Either kind, in one precision.
struct Case {
  const OpCase* op = nullptr;
  const ModelCase* model = nullptr;
  Precision precision = Precision::f32;
  CaseName name() const;
};

}  // namespace tutti::bench
