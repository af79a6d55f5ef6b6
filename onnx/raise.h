// Raises a graph to an ONNX model: the inverse of lower.h.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "onnx/model.h"

namespace tutti::onnx {

/// The graph in ONNX ops, of opset 20. Inputs are the feeds that an output depends on, under their names; `outputs`
/// maps states to the output names. States that are read keep their names: the caller adds their values to
/// Model::weights. All other constants are Constant nodes. Ops without an ONNX form are decomposed. Throws
/// Error(declined) listing every node that cannot be converted, with op and place.
Model raise(const Graph& graph, const std::map<std::string, std::string>& outputs);

/// Merges two models of the same graph with different batch sizes into one: dimensions that differ become a dynamic
/// size "batch", computed from the first input. Throws Error(invalid) naming the first node for which this is
/// impossible.
Model with_open_batch(const Model& a, const Model& b, int64_t batch_a, int64_t batch_b);

/// Ops with a form, sorted by name; other elementwise ops are converted by their expression.
std::vector<std::string> all_forms();

}  // namespace tutti::onnx
