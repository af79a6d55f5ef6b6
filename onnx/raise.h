// A graph of ours as an ONNX model: the way that lower.h goes, back.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "onnx/model.h"

namespace tutti::onnx {

/// The graph's nodes in ONNX's ops, of opset 20. Inputs are the feeds that an output hangs on, under their names;
/// `outputs` names an output for each state that is to be one. States that are read keep their names: the caller adds
/// their values as Model::weights. All other constants are Constant nodes. What has no form of its own in ONNX is
/// decomposed. Throws Error(declined) that lists every node that is left, with op and place.
Model raise(const Graph& graph, const std::map<std::string, std::string>& outputs);

/// One model from two of the same graph with batches of those sizes: what differs becomes an open size "batch", read
/// off the first input. Throws Error(invalid) naming the first node where that cannot be.
Model with_open_batch(const Model& a, const Model& b, int64_t batch_a, int64_t batch_b);

/// Our ops that have a form, in the order of their names; elementwise ops have one of their expression besides.
std::vector<std::string> all_forms();

}  // namespace tutti::onnx
