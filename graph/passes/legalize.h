// Replaces what a device declines by its decomposition.
#pragma once
#include <functional>
#include <unordered_map>

#include "core/runtime/session.h"
#include "graph/graph.h"

namespace tutti {

/// Asks the device about every node of a graph.
using Ask = std::function<std::vector<Verdict>(const Graph&)>;

/// Legalizes graphs for one device; remembers verdicts by node signature (op, version, attributes, input types), so
/// each signature is asked about once, all new ones of a round in one call.
class Legalizer {
 public:
  explicit Legalizer(Ask ask) : ask_(std::move(ask)) {}
  /// For a session's device; the session must outlive it.
  explicit Legalizer(Session& session);
  /// A graph of which the device accepts every node. Throws Error(declined) listing each node that it declines and that
  /// has no decomposition, with the reasons.
  Graph run(const Graph& g);
  int calls() const { return calls_; }
  size_t signatures() const { return verdicts_.size(); }

 private:
  void learn(const Graph& g);
  Ask ask_;
  std::unordered_map<std::string, Verdict> verdicts_;
  int calls_ = 0;
};

}  // namespace tutti
