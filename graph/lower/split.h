// Cuts a graph into parts that run one after the other on different places (devices), for nodes that one of them
// declines.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tutti {

/// A value that the host carries from one place to another.
struct Carried {
  std::string name;  ///< of the state that it is read from or written to, or of the feed that it becomes
  size_t value = 0;  ///< which of Split::values
};

/// Nodes that run in one go on one place.
struct Part {
  size_t place = 0;
  Graph graph;
  std::vector<Carried> feeds;    ///< feeds of the graph that hold carried values; all others are the step's own
  std::vector<Carried> results;  ///< states to read after this part
};

/// How one step runs: read `before`, run the parts in order, write `after`.
struct Split {
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
Graph alone(const Graph& g, const Node& n);

/// `places`: per node where it runs. `homes`: where states live; a state that is not in it is given a home, where it is
/// written (else read, else place 0), and added. Values that cross between parts of one place stay there, as states
/// whose names start with `prefix`, which no other graph of these sessions may use. Every state of `g` is declared at
/// its home. Runs that do what g does: a part reads a state's value from before the step whatever parts have run.
Split split(const Graph& g, const std::vector<size_t>& places, std::map<std::string, size_t>& homes,
            const std::string& prefix);

}  // namespace tutti
