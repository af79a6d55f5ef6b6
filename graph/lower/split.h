// Splits a graph into parts that run in sequence on several devices, for nodes that one of them declines. Devices are
// numbered; `place` is a device's number.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// A value that the host copies between devices.
struct TUTTI_API Carried {
  std::string name;  ///< of the state that it is read from or written to, or of the feed
  size_t value = 0;  ///< index in Split::values
};

/// Nodes that one device runs as one program.
struct TUTTI_API Part {
  size_t place = 0;
  Graph graph;
  std::vector<Carried> feeds;    ///< feeds of the graph that hold copied values; all others are the step's own
  std::vector<Carried> results;  ///< states to read after this part
};

/// The execution plan of one step: read `before`, run the parts in order, write `after`.
struct TUTTI_API Split {
  struct Access {
    size_t place = 0;
    Carried carried;
  };
  std::vector<Part> parts;
  std::vector<TensorType> values;  ///< the values copied by the host
  std::vector<Access> before;      ///< states that another device reads as well
  std::vector<Access> after;       ///< states whose new value is computed elsewhere or before the last read
  /// Bytes per step copied between devices and host.
  uint64_t bytes_per_step() const;
};

/// A graph of only this node, with feeds as inputs.
TUTTI_API Graph alone(const Graph& g, const Node& n);

/// - places: per node, the device that runs it
/// - homes: per state, the device that holds it. A state without a home is assigned one: where it is written, else
///   where it is read, else device 0. Every state of `g` is declared at its home.
/// - prefix: of the names of states that hold values between parts of one device. No other graph of these sessions
///   may use it.
/// Every part reads the values that states had before the step, regardless of earlier parts. Together the parts are
/// equivalent to `g`.
TUTTI_API Split split(const Graph& g, const std::vector<size_t>& places, std::map<std::string, size_t>& homes,
                      const std::string& prefix);

}  // namespace tutti
