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

/// A value that ranks exchange during a run: the sum of all ranks' values, which the owner gets, or all ranks; or the
/// owner's value, which begins to travel at one node and is there behind another.
struct Exchange {
  static constexpr int all_ranks = -1;
  enum class Kind : int64_t { sum, begin, await };
  int64_t number = 0;
  Kind kind = Kind::sum;
  int owner = all_ranks;
  int64_t begun = 0;  ///< await: the number of its begin
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
/// computes its casts and transposes again. It begins to travel before the module ahead computes. Where all that reads
/// a parameter is a cast to one type of two bytes, the cast travels. States PREFIX + parameter, to which the program
/// adds a value, get the sum of all ranks' values, and are on that rank only.
TUTTI_API Graph divide(const Graph& g, const Division& division, const std::string& prefix);

}  // namespace tutti
