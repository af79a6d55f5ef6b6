#include "graph/passes/group.h"

#include <algorithm>
#include <set>

#include "graph/passes/rewrite.h"

namespace tutti {
namespace {

constexpr uint32_t longest_chain = 32;

/// Which nodes must come before which: data, and old state values before their in-place update.
class Order {
 public:
  explicit Order(const Graph& g) : after_(g.nodes().size()), waits_(g.nodes().size()) {
    std::vector<std::vector<uint32_t>> readers(g.values().size());
    for (uint32_t k = 0; k < g.nodes().size(); ++k)
      for (ValueId i : g.nodes()[k].inputs) {
        if (g.info(i).role == Role::temp) add(g.info(i).producer, k);
        readers[i].push_back(k);
      }
    for (const State& s : g.states()) {
      if (s.before == none || s.after == s.before || g.info(s.after).role != Role::temp) continue;
      uint32_t update = g.info(s.after).producer;
      for (uint32_t reader : readers[s.before])
        if (reader != update && !reaches(update, reader)) add(reader, update);
    }
  }
  const std::set<uint32_t>& after(uint32_t node) const { return after_[node]; }
  size_t waits(uint32_t node) const { return waits_[node]; }

 private:
  void add(uint32_t first, uint32_t second) {
    if (after_[first].insert(second).second) ++waits_[second];
  }
  bool reaches(uint32_t from, uint32_t to) const {
    std::vector<bool> seen(after_.size());
    std::vector<uint32_t> open = {from};
    while (!open.empty()) {
      uint32_t k = open.back();
      open.pop_back();
      if (k == to) return true;
      for (uint32_t next : after_[k]) {
        if (seen[next]) continue;
        seen[next] = true;
        open.push_back(next);
      }
    }
    return false;
  }
  std::vector<std::set<uint32_t>> after_;
  std::vector<size_t> waits_;
};

enum class Phase { forward, backward, update };

Phase phase(const Node& n) {
  if (n.label.ends_with(".backward")) return Phase::backward;
  return n.label.starts_with("update") ? Phase::update : Phase::forward;
}

class Scheduler {
 public:
  explicit Scheduler(const Graph& g) : g_(g), order_(g), rewriter_(g), waits_(g.nodes().size()) {
    for (uint32_t k = 0; k < waits_.size(); ++k) {
      waits_[k] = order_.waits(k);
      if (waits_[k] == 0) ready_.insert(k);
    }
  }

  Grouped run() {
    while (!ready_.empty()) {
      uint32_t head = *ready_.begin();
      uint32_t first = count_;
      take(head);
      uint32_t kind = TUTTI_CHAIN;
      if (uint32_t twin = find_twin(head); twin != none) {
        kind = TUTTI_BATCH;
        for (; twin != none; twin = find_twin(head)) take(twin);
      } else {
        std::set<ValueId> made(node(head).results.begin(), node(head).results.end());
        for (uint32_t next; count_ - first < longest_chain && (next = find_next(head, made)) != none;) {
          take(next);
          made.insert(node(next).results.begin(), node(next).results.end());
        }
      }
      if (count_ - first > 1) groups_.push_back({kind, first, count_ - first, 0});
    }
    return {rewriter_.finish(), std::move(groups_)};
  }

 private:
  const Node& node(uint32_t k) const { return g_.nodes()[k]; }
  const Shape& shape(uint32_t k) const { return g_.info(node(k).results[0]).type.shape; }

  void take(uint32_t k) {
    rewriter_.copy(node(k));
    ready_.erase(k);
    ++count_;
    for (uint32_t next : order_.after(k))
      if (--waits_[next] == 0) ready_.insert(next);
  }

  /// The next ready elementwise node of the same shape and phase that reads what the chain made, or that is next
  /// anyway.
  uint32_t find_next(uint32_t head, const std::set<ValueId>& made) const {
    for (uint32_t k : ready_) {
      const Node& n = node(k);
      if (!n.op->elementwise() || phase(n) != phase(node(head)) || shape(k) != shape(head)) continue;
      bool reads = std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueId i) { return made.contains(i); });
      if (reads || k == *ready_.begin()) return k;
    }
    return none;
  }

  /// A ready update node with the same op and attributes over another tensor.
  uint32_t find_twin(uint32_t head) const {
    const Node& h = node(head);
    if (!h.op->elementwise() || phase(h) != Phase::update || shape(head).empty()) return none;
    for (uint32_t k : ready_)
      if (node(k).op == h.op && node(k).attrs == h.attrs) return k;
    return none;
  }

  const Graph& g_;
  Order order_;
  Rewriter rewriter_;
  std::vector<size_t> waits_;
  std::set<uint32_t> ready_;
  std::vector<TuttiGroup> groups_;
  uint32_t count_ = 0;
};

}  // namespace

Grouped group(const Graph& g) { return Scheduler(g).run(); }

}  // namespace tutti
