// Benchmark cases: training steps of models, and single ops with given shapes.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "bench/result.h"
#include "train/run/trainer.h"

namespace tutti::bench {

/// One op of a given shape.
struct OpCase {
  std::string op;
  Shape shape;
  std::string shape_text() const;  ///< "512x512x512"
};

/// A kind of OpCase: the meaning of its shape and the default shapes.
struct OpKind {
  std::string_view name, shape_means;
  Shape usual, quick;
  /// Builds the graph of one run on states. Fill floats with numbers in (0, 1), i32 with numbers below shape[0].
  Graph (*build)(const Shape& shape, DType dtype);
};

/// All ops that can be measured, in the order of the default set.
const std::vector<OpKind>& op_kinds();
/// "matmul", or "matmul:256x512x128" with a shape. Throws Error(invalid) that lists the ops or explains the shape.
OpCase parse_op(const std::string& text, bool quick);
Graph build(const OpCase& op, DType dtype);

/// The training step of one model.
struct ModelCase {
  std::string name;    ///< "mlp"
  std::string detail;  ///< "784-512-256-10, batch 64"
  Task task;
  TrainerOptions options;  ///< without the precision
  std::shared_ptr<const data::Source> set;
  std::string peer;  ///< a JSON object from which a peer builds the same model
};

/// An op or a model (one of them is null) in one precision.
struct Case {
  const OpCase* op = nullptr;
  const ModelCase* model = nullptr;
  Precision precision = Precision::f32;
  CaseName name() const;
};

}  // namespace tutti::bench
