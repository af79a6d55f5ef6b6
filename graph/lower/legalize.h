// Replaces ops that a device declines by their decompositions.
#pragma once
#include <functional>
#include <unordered_map>

#include "core/base/export.h"
#include "core/runtime/session.h"
#include "graph/graph.h"

namespace tutti {

/// Asks the device about every node of a graph.
using Ask = std::function<std::vector<Verdict>(const Graph&)>;

/// A node that a device cannot run and that has no decomposition.
struct TUTTI_API Declined {
  uint32_t node = 0;  ///< index in the graph that was checked
  std::string text;   ///< "matmul(f32[2, 3], f32[3, 4]) at fc1"
  std::string reason;
};

/// Legalizes graphs for one device. Verdicts are cached by node signature (op, attributes, input types): each signature
/// is checked once; the new signatures of one round of decomposition are checked in one call.
class TUTTI_API Legalizer {
 public:
  /// `device`: its name in errors.
  explicit Legalizer(Ask ask, std::string device = "the device", uint32_t numerics = TUTTI_FAST)
      : ask_(std::move(ask)), device_(std::move(device)), numerics_(numerics) {}
  /// For a session's device; the session must outlive the Legalizer.
  explicit Legalizer(Session& session);
  /// A graph of which the device accepts every node. Throws Error(declined) listing every node that it declines and
  /// that has no decomposition, with the reasons.
  Graph run(const Graph& g);
  /// Decomposes declined nodes that have a decomposition; other declined nodes remain. With exact numerics, decomposes
  /// all nodes but those of ordered and elementwise ops, whatever the device accepts, so that all devices compute the
  /// same graph.
  Graph expand(const Graph& g);
  /// Every node of `g` that the device declines, in order.
  std::vector<Declined> declined(const Graph& g);
  /// Whether run() would succeed.
  bool accepts(const Graph& g) { return declined(expand(g)).empty(); }
  /// Of the programs for the device.
  uint32_t numerics() const { return numerics_; }
  int calls() const { return calls_; }
  size_t signatures() const { return verdicts_.size(); }

 private:
  /// The verdict of each node; asks about signatures that are new. Valid while the legalizer lives.
  std::vector<const Verdict*> learn(const Graph& g);
  Ask ask_;
  std::string device_;
  uint32_t numerics_;
  std::unordered_map<std::string, Verdict> verdicts_;
  int calls_ = 0;
};

/// Throws Error(declined) listing the nodes, with equal lines counted, in at most a dozen lines.
[[noreturn]] TUTTI_API void throw_declined(const std::string& device, const std::vector<Declined>& nodes, size_t of,
                                           const std::string& remedy);

}  // namespace tutti
