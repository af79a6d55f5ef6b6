// Lowers a graph to the flat C structs of the plugin ABI.
#pragma once
#include <deque>
#include <memory>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// Owns all memory that its TuttiProgram points to.
class TUTTI_API Lowered {
 public:
  explicit Lowered(const Graph& g, std::vector<TuttiGroup> groups = {}, uint32_t numerics = TUTTI_FAST);
  Lowered(const Lowered&) = delete;
  const TuttiProgram& program() const { return program_; }
  /// Per node of the program; its nodes are those of the graph.
  const std::vector<Phase>& phases() const { return phases_; }
  /// Names of the feeds in program order.
  const std::vector<std::string>& feeds() const { return feeds_; }
  /// Numbers of the exchanges (graph/passes/exchange.h) in program order.
  const std::vector<int64_t>& exchanges() const { return exchanges_; }

 private:
  TuttiArray attrs_of(const Attrs& attrs);
  std::vector<TuttiValue> values_;
  std::vector<TuttiNode> nodes_;
  std::vector<TuttiState> states_;
  std::vector<TuttiGroup> groups_;
  std::vector<std::string> feeds_;
  std::vector<int64_t> exchanges_;
  std::vector<Phase> phases_;
  std::deque<std::string> texts_;
  std::deque<std::vector<int64_t>> ints_;
  std::deque<std::vector<double>> reals_;
  std::deque<std::vector<uint32_t>> ids_;
  std::deque<std::vector<std::byte>> data_;
  std::deque<std::vector<TuttiAttr>> attrs_;
  std::deque<std::vector<TuttiInstr>> exprs_;
  TuttiProgram program_ = {};
};

}  // namespace tutti
