// Parameters that only one rank keeps: programs get them from it where they are read, and give it their gradients.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tutti {

/// Which rank keeps each of the parameters that are not on all ranks, and which rank this is.
struct Division {
  std::map<std::string, int> owner;
  int rank = 0;
  bool contains(const std::string& parameter) const { return owner.contains(parameter); }
  /// Whether another rank keeps it.
  bool absent(const std::string& parameter) const {
    auto it = owner.find(parameter);
    return it != owner.end() && it->second != rank;
  }
};

/// A value that ranks exchange during a run. Owner: the rank whose value all get; all_ranks: all get the sum.
struct Exchange {
  static constexpr int all_ranks = -1;
  int64_t number = 0;
  int owner = all_ranks;
  TensorType type;
  bool operator==(const Exchange&) const = default;
};

/// The op of the nodes that exchange a value (core/abi/tutti_exchange.h). No device decomposes it.
extern TUTTI_API const OpDef exchange_op;
/// Adds one; `x`: this rank's value, or null where it has none.
TUTTI_API Value exchange(Graph& g, Value x, const Exchange& how);
/// Those of a graph, in the order of its nodes.
TUTTI_API std::vector<Exchange> exchanges_of(const Graph& g);

/// The same program on a rank of the division. Where a divided parameter is read, the rank that keeps it sends it;
/// every module, and the forward and the backward pass, gets it anew, so that it is in memory only meanwhile, and
/// computes its casts and transposes again. States PREFIX + parameter, to which the program adds a value, get the sum
/// of all ranks' values, and are on that rank only.
TUTTI_API Graph divide(const Graph& g, const Division& division, const std::string& prefix);

}  // namespace tutti
