// Some nodes of a program alone, with what they read: judged against float64 and run on any device.
#pragma once
#include <string>
#include <vector>

#include "verify/parity/compare.h"
#include "verify/parity/device_program.h"

namespace tutti::bisect {

using parity::Bound;
using parity::bound_of;
using parity::Tensors;

/// Neighbouring nodes of a graph.
struct Span {
  uint32_t first = 0, count = 1;
  bool holds(uint32_t node) const { return node >= first && node < first + count; }
};

/// What a value that other nodes made is called outside of its graph: "%12", as print() writes it.
std::string value_name(ValueId v);

/// Per value the nodes that read it.
using Readers = std::vector<std::vector<uint32_t>>;
Readers readers_of(const Graph& g);
/// Whether a node outside of the span, or a state after the step, reads value v.
bool leaves(const Graph& g, const Readers& readers, Span span, ValueId v);
/// The state that holds value v after the step, else value_name(v).
std::string result_name(const Graph& g, ValueId v);

/// The nodes of a span as a graph of their own. Feeds, constants and states stay what they are; values of other nodes
/// are feeds "%12". Results that leave the span are states, under their result_name.
Graph cut(const Graph& g, const Readers& readers, Span span);

/// Per state that the graph changes: its value by the float64 reference.
Tensors truths_of(Graph& g, const Tensors& inputs);

/// How far a result may be when the graph's inputs are exact: the largest bound of its nodes, growing with the root of
/// their number.
Bound bound_of(const Graph& g, DType type);

/// The result that is furthest from the truth.
struct Judgement {
  bool ok = true;
  std::string result;        ///< a state of the graph
  size_t at = 0;             ///< its worst element
  double got = 0, want = 0;  ///< there
  double share = 0;          ///< of what is allowed there
  std::string text;          ///< what is wrong, "" when ok
};

/// Compares what a device gave for `inputs` with the truth. What only a rounding between the nodes decides (which side
/// of a jump an inner value falls on) passes either way; the inputs are taken as exact.
Judgement judge(const Graph& g, const Tensors& inputs, const Tensors& truth, const Tensors& got);

/// The indices of element `at` of a row-major tensor.
Shape place_of(const Shape& shape, size_t at);

/// The states after one step of that graph alone, in a session of its own. Throws Error.
Tensors run_alone(const Device& device, const Graph& g, const Tensors& inputs);

/// What one device gave for a graph.
struct Answer {
  std::string id, name, driver;  ///< of the device
  std::string how;               ///< "in the step" or "alone"
  Tensors results;               ///< every state that the graph changes
};

/// What a replay file holds.
struct Replay {
  Graph graph;
  Tensors inputs;  ///< for its feeds and the states that it reads
  Tensors truth;
  std::vector<Answer> answers;
  std::map<std::string, std::string> about;  ///< "command", "step" (from 1), "node", "version"
};

/// A safetensors file, written whole or not at all. Throws Error(invalid) naming the path.
void write_replay(const std::string& path, const Replay& replay);
/// Reads and checks it: the graph is built anew node by node, every tensor held against it, sizes bounded, its
/// checksum computed anew. Throws Error(invalid) naming the file and what is wrong.
Replay read_replay(const std::string& path);

}  // namespace tutti::bisect
