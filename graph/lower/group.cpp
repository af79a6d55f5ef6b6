#include "graph/lower/group.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "graph/passes/rewrite.h"

namespace tutti {
namespace {

constexpr uint32_t longest_chain = 32;
constexpr int64_t large = 1 << 16;  // elements: a tensor large enough to justify its own launch

/// Ordering constraints between nodes: data dependencies, and readers of old state values before the in-place update.
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
      if (s.before == no_id || s.after == s.before || g.info(s.after).role != Role::temp) continue;
      uint32_t update = g.info(s.after).producer;
      for (uint32_t reader : readers[s.before])
        if (reader != update && !reaches(update, reader)) {
          add(reader, update);
          forward_ = forward_ && reader < update;
        }
    }
  }
  const std::set<uint32_t>& after(uint32_t node) const { return after_[node]; }
  size_t waits(uint32_t node) const { return waits_[node]; }

 private:
  void add(uint32_t first, uint32_t second) {
    if (after_[first].insert(second).second) ++waits_[second];
  }
  bool reaches(uint32_t from, uint32_t to) const {
    if (forward_ && to < from) return false;
    std::vector<bool> seen(after_.size());
    std::vector<uint32_t> open = {from};
    while (!open.empty()) {
      uint32_t k = open.back();
      open.pop_back();
      if (k == to) return true;
      for (uint32_t next : after_[k]) {
        if (seen[next] || (forward_ && next > to)) continue;
        seen[next] = true;
        open.push_back(next);
      }
    }
    return false;
  }
  std::vector<std::set<uint32_t>> after_;
  std::vector<size_t> waits_;
  bool forward_ = true;  // so far no node depends on a later one
};

/// The parts of a step; nodes of different parts do not share a pass over memory.
Phase part(const Node& n) {
  if (n.phase == Phase::backward || n.phase == Phase::recompute) return Phase::backward;
  return n.phase == Phase::update ? n.phase : Phase::forward;
}

class Scheduler {
 public:
  explicit Scheduler(const Graph& g) : g_(g), order_(g), rewriter_(g), waits_(g.nodes().size()), keys_(ready_keys()) {
    for (uint32_t k = 0; k < waits_.size(); ++k) {
      waits_[k] = order_.waits(k);
      if (waits_[k] == 0) make_ready(k);
    }
  }

  Grouped run() {
    while (!ready_.empty()) {
      uint32_t head = ready_.begin()->node;
      uint32_t first = count_;
      const std::vector<uint32_t> batch = batched_with(head);  // before a taken node makes those ready that read it
      take(head);
      uint32_t kind = TUTTI_CHAIN, reader = keys_[head].before;
      if (keys_[head].gradient) {
        if (ready_.contains(keys_[reader])) take(reader);
      } else if (!batch.empty()) {
        kind = TUTTI_BATCH;
        for (uint32_t k : batch) take(k);
      } else {
        Chain chain;
        extend(chain, head);
        for (uint32_t next; count_ - first < longest_chain && (next = find_next(head, chain)) != no_id;) {
          take(next);
          extend(chain, next);
        }
      }
      if (count_ - first > 1) groups_.push_back({kind, first, count_ - first, 0});
    }
    return {rewriter_.finish(), std::move(groups_)};
  }

 private:
  /// The values produced by a chain so far, and the nodes that may read them.
  struct Chain {
    std::set<ValueId> made;
    std::set<uint32_t> readers;
  };
  using Kind = std::pair<const OpDef*, std::string>;  // op and attributes

  /// The priority of a node among the ready nodes.
  struct ReadyKey {
    uint32_t before;
    bool gradient;  ///< a gradient that the optimizer widens: the last of its inputs
    uint32_t node;
    bool operator<(const ReadyKey& o) const {
      return std::tie(before, gradient, node) < std::tie(o.before, o.gradient, o.node);
    }
  };

  /// In the graph's order, except that an elementwise node whose result is no smaller than the inputs it keeps alive (a
  /// cast from bf16) comes right before its single elementwise reader, so that they share a pass.
  std::vector<ReadyKey> ready_keys() const {
    std::vector<uint32_t> reader(g_.values().size(), no_id), reads(g_.values().size());
    for (uint32_t k = 0; k < g_.nodes().size(); ++k)
      for (ValueId i : node(k).inputs) {
        reader[i] = k;
        ++reads[i];
      }
    for (const State& s : g_.states()) reads[s.after] += 2;
    std::vector<ReadyKey> all;
    for (uint32_t k = 0; k < g_.nodes().size(); ++k) {
      ValueId y = node(k).results[0];
      bool joins =
          node(k).op->elementwise() && node(k).results.size() == 1 && reads[y] == 1 && joins_reader(k, reader[y]);
      all.push_back({joins ? reader[y] : k, joins && feeds_update(k, reader[y]), k});
    }
    return all;
  }

  bool joins_reader(uint32_t k, uint32_t reader) const {
    if (!node(reader).op->elementwise() || shape(reader) != shape(k)) return false;
    uint64_t kept = 0;
    for (ValueId i : node(k).inputs)
      if (g_.info(i).role == Role::temp) kept += num_bytes(g_.info(i).type);
    if (kept > num_bytes(g_.info(node(k).results[0]).type)) return false;
    return part(node(reader)) == part(node(k)) || feeds_update(k, reader);
  }

  /// Whether it passes a large gradient to the optimizer, which then reads it without a cast.
  bool feeds_update(uint32_t k, uint32_t reader) const {
    return node(k).phase == Phase::backward && node(reader).phase == Phase::update && num_elements(shape(k)) >= large;
  }

  const Node& node(uint32_t k) const { return g_.nodes()[k]; }
  Kind kind(uint32_t k) const { return {node(k).op, node(k).attrs.to_string()}; }
  const Shape& shape(uint32_t k) const { return g_.info(node(k).results[0]).type.shape; }

  void take(uint32_t k) {
    rewriter_.copy(node(k));
    ready_.erase(keys_[k]);
    if (node(k).op->elementwise()) ready_by_kind_[kind(k)].erase(k);
    ++count_;
    for (uint32_t next : order_.after(k))
      if (--waits_[next] == 0) make_ready(next);
  }

  void make_ready(uint32_t k) {
    ready_.insert(keys_[k]);
    if (node(k).op->elementwise()) ready_by_kind_[kind(k)].insert(k);
  }

  void extend(Chain& chain, uint32_t k) const {
    chain.made.insert(node(k).results.begin(), node(k).results.end());
    chain.readers.insert(order_.after(k).begin(), order_.after(k).end());
  }

  /// Whether a node waits only for ready nodes that join it.
  bool may_run(uint32_t reader) const {
    auto first = ready_.lower_bound({reader, false, 0}), last = ready_.lower_bound({reader + 1, false, 0});
    return waits_[reader] <= static_cast<size_t>(std::distance(first, last));
  }

  /// The next ready elementwise node of the same shape and phase that comes next anyway or reads values of the chain.
  uint32_t find_next(uint32_t head, const Chain& chain) const {
    auto reads = [&](uint32_t k) {
      return std::ranges::any_of(node(k).inputs, [&](ValueId i) { return chain.made.contains(i); });
    };
    auto fits = [&](uint32_t k) {
      if (keys_[k].before != k && (keys_[k].gradient || !may_run(keys_[k].before))) return false;  // joins its reader
      return node(k).op->elementwise() && part(node(k)) == part(node(head)) && shape(k) == shape(head);
    };
    if (!ready_.empty() && fits(ready_.begin()->node)) return ready_.begin()->node;
    for (uint32_t k : chain.readers)
      if (reads(k) && ready_.contains(keys_[k]) && fits(k)) return k;
    return no_id;
  }

  /// The other ready update nodes with the same op and attributes, over other tensors.
  std::vector<uint32_t> batched_with(uint32_t head) const {
    const Node& h = node(head);
    if (!h.op->elementwise() || h.phase != Phase::update || shape(head).empty()) return {};
    auto it = ready_by_kind_.find(kind(head));
    if (it == ready_by_kind_.end()) return {};
    std::vector<uint32_t> all(it->second.begin(), it->second.end());
    std::erase(all, head);
    return all;
  }

  const Graph& g_;
  Order order_;
  Rewriter rewriter_;
  std::vector<size_t> waits_;
  std::vector<ReadyKey> keys_;
  std::set<ReadyKey> ready_;
  std::map<Kind, std::set<uint32_t>> ready_by_kind_;  // ready elementwise nodes
  std::vector<TuttiGroup> groups_;
  uint32_t count_ = 0;
};

}  // namespace

Grouped group(const Graph& g) { return Scheduler(g).run(); }

}  // namespace tutti
