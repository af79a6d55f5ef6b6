#include "graph/lower/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "graph/op.h"

namespace tutti {
namespace {

/// The part of each node; parts are numbered in execution order. Greedy: runs all ready nodes of the current device
/// before switching to another.
std::vector<size_t> schedule(const Graph& g, const std::vector<size_t>& places, std::vector<size_t>& part_places) {
  size_t count = g.nodes().size();
  std::vector<std::vector<uint32_t>> readers(count);
  std::vector<size_t> waits(count), part(count);
  std::map<size_t, std::set<uint32_t>> ready;  // by device
  for (uint32_t k = 0; k < count; ++k) {
    for (ValueId i : g.nodes()[k].inputs)
      if (g.info(i).role == Role::temp) {
        readers[g.info(i).producer].push_back(k);
        ++waits[k];
      }
    if (waits[k] == 0) ready[places[k]].insert(k);
  }
  for (size_t done = 0; done < count;) {
    size_t place = part_places.empty() ? 0 : part_places.back();
    if (ready[place].empty())
      place = std::find_if(ready.begin(), ready.end(), [](const auto& r) { return !r.second.empty(); })->first;
    part_places.push_back(place);
    std::set<uint32_t>& here = ready[place];
    for (; !here.empty(); ++done) {
      uint32_t k = *here.begin();
      here.erase(here.begin());
      part[k] = part_places.size() - 1;
      for (uint32_t next : readers[k])
        if (--waits[next] == 0) ready[places[next]].insert(next);
    }
  }
  return part;
}

class Splitter {
 public:
  Splitter(const Graph& g, const std::vector<size_t>& places, std::map<std::string, size_t>& homes,
           const std::string& prefix)
      : g_(g), homes_(homes), prefix_(prefix), part_of_(schedule(g, places, part_places_)) {
    give_homes(places);
    for (const State& s : g_.states())
      if (fresh_.contains(s.name) || s.after != s.before) ending_part(s);  // may add parts
    for (size_t place : part_places_) out_.parts.emplace_back().place = place;
    maps_.resize(out_.parts.size());
    find_last_reads();
  }

  Split run() {
    std::vector<uint32_t> order(g_.nodes().size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, {}, [&](uint32_t k) { return part_of_[k]; });
    for (uint32_t k : order) copy(g_.nodes()[k], part_of_[k]);
    for (const State& s : g_.states()) end(s);
    return std::move(out_);
  }

 private:
  bool made(ValueId v) const { return g_.info(v).role == Role::temp; }

  void give_homes(const std::vector<size_t>& places) {
    std::map<ValueId, size_t> read_at;  // the lowest device that reads a value
    for (uint32_t k = 0; k < g_.nodes().size(); ++k)
      for (ValueId i : g_.nodes()[k].inputs) {
        auto [it, first] = read_at.try_emplace(i, places[k]);
        it->second = std::min(it->second, places[k]);
      }
    for (const State& s : g_.states()) {
      if (homes_.contains(s.name)) continue;
      fresh_.insert(s.name);
      bool read_only = s.after == s.before;
      auto reader = read_at.find(s.before);
      if (made(s.after))
        homes_[s.name] = places[g_.info(s.after).producer];
      else
        homes_[s.name] = read_only && reader != read_at.end() ? reader->second : 0;
    }
  }

  /// The part in which a state gets its new value: that of the node that produces it; for a feed, constant or state the
  /// last part on the state's home device.
  size_t ending_part(const State& s) {
    if (made(s.after)) return part_of_[g_.info(s.after).producer];
    for (size_t p = part_places_.size(); p-- > 0;)
      if (part_places_[p] == homes_.at(s.name)) return p;
    part_places_.push_back(homes_.at(s.name));
    return part_places_.size() - 1;
  }

  /// Per state value: the last part on its home device that reads it. Other devices read the host's copy.
  void find_last_reads() {
    auto read = [&](ValueId v, size_t part) {
      if (g_.info(v).role == Role::state && homes_.at(g_.info(v).name) == part_places_[part])
        last_read_[v] = std::max(last_read_[v], part);
    };
    for (uint32_t k = 0; k < g_.nodes().size(); ++k)
      for (ValueId i : g_.nodes()[k].inputs) read(i, part_of_[k]);
    for (const State& s : g_.states())
      if (s.after != s.before) read(s.after, ending_part(s));
  }

  void copy(const Node& n, size_t part) {
    Values in;
    for (ValueId i : n.inputs) in.push_back(value(i, part));
    Graph& to = out_.parts[part].graph;
    to.set_origin(n);
    Values out = to.add(*n.op, in, n.attrs);
    to.set_origin({});
    for (size_t k = 0; k < out.size(); ++k) maps_[part][n.results[k]] = out[k];
  }

  /// An old value inside a part: already mapped, or imported.
  Value value(ValueId old, size_t part) {
    if (auto it = maps_[part].find(old); it != maps_[part].end()) return it->second;
    return maps_[part][old] = bring(old, out_.parts[part]);
  }

  Value bring(ValueId old, Part& to) {
    const ValueInfo& v = g_.info(old);
    if (v.role == Role::constant) return to.graph.constant(v.type, v.data);
    if (v.role == Role::feed) return to.graph.feed(v.name, v.type);
    if (v.role == Role::state && homes_.at(v.name) == to.place)
      return to.graph.state(v.name, v.type, g_.find_state(v.name)->role);
    if (v.role == Role::temp && out_.parts[part_of_[v.producer]].place == to.place)
      return to.graph.state(keep(old), v.type);
    size_t number = carry(old);
    std::string feed = fmt::format("{}feed{}", prefix_, number);
    to.feeds.push_back({feed, number});
    return to.graph.feed(feed, v.type);
  }

  /// The name of the state in which the producing part stores a value.
  std::string keep(ValueId old) {
    std::string name = fmt::format("{}{}", prefix_, old);
    size_t part = part_of_[g_.info(old).producer];
    if (kept_.insert(old).second) out_.parts[part].graph.set_state(name, maps_[part].at(old));
    return name;
  }

  /// The host's copy of a node's result, or of a state before the step.
  size_t carry(ValueId old) {
    auto [it, first] = carried_.try_emplace(old, out_.values.size());
    if (!first) return it->second;
    const ValueInfo& v = g_.info(old);
    out_.values.push_back(v.type);
    if (v.role == Role::state)
      out_.before.push_back({homes_.at(v.name), {v.name, it->second}});
    else
      out_.parts[part_of_[v.producer]].results.push_back({keep(old), it->second});
    return it->second;
  }

  /// Sets a state's value after the step: in the part that produces it, or by the host at the end if that part is not
  /// on the state's home device or a later part still reads the old value.
  void end(const State& s) {
    size_t home = homes_.at(s.name);
    bool fresh = fresh_.contains(s.name);
    if (s.after == s.before) {
      if (fresh) value(s.before, ending_part(s));
      return;
    }
    size_t part = ending_part(s);
    bool here = out_.parts[part].place == home;
    if (here && s.before != no_id) value(s.before, part);  // one state that is read and written, not two
    auto last = s.before == no_id ? last_read_.end() : last_read_.find(s.before);
    if (here && (last == last_read_.end() || last->second <= part))
      out_.parts[part].graph.set_state(s.name, value(s.after, part), s.role);
    else
      out_.after.push_back({home, {s.name, carry(s.after)}});
  }

  const Graph& g_;
  std::map<std::string, size_t>& homes_;
  const std::string& prefix_;
  std::set<std::string> fresh_;                 // states whose home was assigned by this split: not yet declared there
  std::vector<size_t> part_places_;             // per part
  std::vector<size_t> part_of_;                 // per node
  std::vector<std::map<ValueId, Value>> maps_;  // per part: old value to new
  std::map<ValueId, size_t> last_read_, carried_;
  std::set<ValueId> kept_;
  Split out_;
};

}  // namespace

uint64_t Split::bytes_per_step() const {
  uint64_t bytes = 0;
  auto add = [&](const Carried& c) { bytes += num_bytes(values[c.value]); };
  for (const Access& a : before) add(a.carried);
  for (const Part& p : parts) {
    for (const Carried& c : p.feeds) add(c);
    for (const Carried& c : p.results) add(c);
  }
  for (const Access& a : after) add(a.carried);
  return bytes;
}

Graph alone(const Graph& g, const Node& n) {
  Graph out;
  Values in;
  for (size_t k = 0; k < n.inputs.size(); ++k) in.push_back(out.feed(fmt::format("x{}", k), g.info(n.inputs[k]).type));
  out.set_origin(n);
  Values results = out.add(*n.op, in, n.attrs);
  for (size_t k = 0; k < results.size(); ++k) out.set_state(fmt::format("y{}", k), results[k]);
  return out;
}

Split split(const Graph& g, const std::vector<size_t>& places, std::map<std::string, size_t>& homes,
            const std::string& prefix) {
  return Splitter(g, places, homes, prefix).run();
}

}  // namespace tutti
