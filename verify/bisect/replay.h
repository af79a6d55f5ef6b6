// A few nodes of a program with their inputs: compared with float64 and run on any device.
#pragma once
#include <string>
#include <vector>

#include "verify/parity/compare.h"
#include "verify/parity/device_program.h"

namespace tutti::bisect {

using parity::Bound;
using parity::bound_of;
using parity::Tensors;

/// Consecutive nodes of a graph.
struct Span {
  uint32_t first = 0, count = 1;
  bool holds(uint32_t node) const { return node >= first && node < first + count; }
};

/// Name, outside the graph, of a value produced by other nodes: "%12", as in print().
std::string value_name(ValueId v);

/// The nodes that read each value.
using Readers = std::vector<std::vector<uint32_t>>;
Readers readers_of(const Graph& g);
/// Whether a node outside of the span, or a state after the step, reads value v.
bool leaves(const Graph& g, const Readers& readers, Span span, ValueId v);
/// The state that holds value v after the step, else value_name(v).
std::string result_name(const Graph& g, ValueId v);

/// Extracts the nodes of a span as a graph. Feeds, constants and states remain; values of other nodes become feeds
/// "%12". Results that leave the span become states named result_name.
Graph cut(const Graph& g, const Readers& readers, Span span);

/// The float64 reference's value of each state that the graph changes.
Tensors truths_of(Graph& g, const Tensors& inputs);

/// Error bound of a result with exact inputs: the largest bound of the graph's nodes, growing with the square root of
/// their number.
Bound bound_of(const Graph& g, DType type);

/// The result with the largest error.
struct Judgement {
  bool ok = true;
  std::string result;        ///< a state of the graph
  size_t at = 0;             ///< index of its worst element
  double got = 0, want = 0;  ///< values of that element
  double share = 0;          ///< its error divided by the bound
  std::string text;          ///< description of the error, "" if ok
};

/// Compares a device's results for `inputs` with the truth. Both sides of a discontinuity pass if only rounding of an
/// inner value decides between them. The inputs are taken as exact.
Judgement judge(const Graph& g, const Tensors& inputs, const Tensors& truth, const Tensors& got);

/// The indices of element `at` of a row-major tensor.
Shape place_of(const Shape& shape, size_t at);

/// Runs one step of the graph in a separate session and returns the states. Throws Error.
Tensors run_alone(const Device& device, const Graph& g, const Tensors& inputs);

/// One device's results for a graph.
struct Answer {
  std::string id, name, driver;  ///< device id, name and driver
  std::string how;               ///< "in the step" or "alone"
  Tensors results;               ///< every state that the graph changes
};

/// Contents of a replay file.
struct Replay {
  Graph graph;
  Tensors inputs;  ///< feeds, and states that the graph reads
  Tensors truth;
  std::vector<Answer> answers;
  std::map<std::string, std::string> about;  ///< "command", "step" (from 1), "node", "version"
};

/// Writes a safetensors file atomically. Throws Error(invalid) naming the path.
void write_replay(const std::string& path, const Replay& replay);
/// Reads a replay file: rebuilds the graph node by node and checks every tensor, the sizes and the checksum. Throws
/// Error(invalid) naming the file and the problem.
Replay read_replay(const std::string& path);

}  // namespace tutti::bisect
