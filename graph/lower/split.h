// Cuts a graph into parts that run one after the other on several devices, for nodes that one of them declines. A place
// is a device's number.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// A value that the host copies from one device to another.
struct TUTTI_API Carried {
  std::string name;  ///< of the state that it is read from or written to, or of the feed that it becomes
  size_t value = 0;  ///< which of Split::values
};

/// Nodes that one device runs as one program.
struct TUTTI_API Part {
  size_t place = 0;
  Graph graph;
  std::vector<Carried> feeds;    ///< feeds of the graph that hold carried values; all others are the step's own
  std::vector<Carried> results;  ///< states to read after this part
};

/// How one step runs: read `before`, run the parts in order, write `after`.
struct TUTTI_API Split {
  struct Access {
    size_t place = 0;
    Carried carried;
  };
  std::vector<Part> parts;
  std::vector<TensorType> values;  ///< what the host carries
  std::vector<Access> before;      ///< states that another place reads too
  std::vector<Access> after;       ///< states whose new value comes from elsewhere, or too early
  /// Bytes that one step copies between device and host for this.
  uint64_t bytes_per_step() const;
};

/// A graph of this node alone, over feeds.
TUTTI_API Graph alone(const Graph& g, const Node& n);

/// - places: per node, the device that runs it
/// - homes: per state, the device that holds it. A state without a home gets one: where it is written, else where it is
///   read, else place 0. Every state of `g` is declared at its home.
/// - prefix: begins the names of the states that hold values between parts of one device. No other graph of these
///   sessions may use it.
/// Every part reads states as they were before the step, whatever parts have run: together they do what `g` does.
TUTTI_API Split split(const Graph& g, const std::vector<size_t>& places, std::map<std::string, size_t>& homes,
                      const std::string& prefix);

}  // namespace tutti
