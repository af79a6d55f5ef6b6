#include "sdk/rendered_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "sdk/arena.h"
#include "sdk/rendered_kernels.h"
#include "sdk/rendered_memory.h"

namespace tutti::sdk {
namespace {

class Planner {
 public:
  Planner(const Program& program, const Traits& traits, const std::function<void(const std::string&)>& trace)
      : p_(program),
        traits_(traits),
        trace_(trace),
        memory_(p_.values.size(), TUTTI_NONE),
        home_(p_.values.size(), TUTTI_NONE),
        done_(p_.nodes.size()),
        readers_(p_.values.size()),
        remaining_(p_.values.size()) {}

  RenderedPlan run() {
    place_values();
    find_homes();
    for (uint32_t k = 0; k < p_.nodes.size(); ++k)
      if (!done_[k]) node(k);
    copy_states();
    plan_memory();
    return std::move(plan_);
  }

 private:
  uint32_t add_memory(PlannedMemory m) {
    m.bytes = padded(m.bytes);
    plan_.memories.push_back(std::move(m));
    return static_cast<uint32_t>(plan_.memories.size() - 1);
  }
  uint32_t temporary(uint64_t bytes, std::string what, uint32_t value = TUTTI_NONE) {
    return add_memory({.bytes = bytes, .value = value, .what = std::move(what), .first = now_, .last = now_});
  }

  void place_values() {
    for (uint32_t k = 0; k < p_.nodes.size(); ++k)
      for (uint32_t v : p_.nodes[k].inputs) readers_[v].push_back(k), ++remaining_[v];
    for (const State& s : p_.states) {
      ++remaining_[s.after];
      const TensorType& t = p_.type(s.after);
      states_[s.name] = add_memory({.place = Place::state,
                                    .bytes = num_bytes(t),
                                    .state = s.name,
                                    .what = fmt::format("{} of state '{}'", to_string(t), s.name)});
    }
    for (uint32_t v = 0; v < p_.values.size(); ++v) {
      const Value& value = p_.values[v];
      uint64_t bytes = num_bytes(value.type);
      std::string type = to_string(value.type);
      if (value.role == TUTTI_FEED)
        memory_[v] = add_memory({.place = Place::feed,
                                 .bytes = bytes,
                                 .value = v,
                                 .what = fmt::format("{} of feed '{}'", type, value.name)});
      if (value.role == TUTTI_CONST)
        memory_[v] =
            add_memory({.place = Place::constant, .bytes = bytes, .value = v, .what = type + " of a constant"});
      if (value.role == TUTTI_STATE) memory_[v] = states_.at(value.name);
    }
  }

  /// Results that are computed right in their state's memory. A reshape of the old value is the same memory: it must
  /// not be read after the update either.
  void find_homes() {
    std::vector<uint32_t> last = last_readers(p_), producer(p_.values.size(), TUTTI_NONE), root(p_.values.size());
    std::iota(root.begin(), root.end(), 0u);
    for (uint32_t k = 0; k < p_.nodes.size(); ++k)
      for (uint32_t v : p_.nodes[k].results) {
        if (v == TUTTI_NONE) continue;
        producer[v] = k;
        if (p_.nodes[k].op == "reshape" && !p_.nodes[k].inputs.empty()) root[v] = root[p_.nodes[k].inputs[0]];
      }
    std::vector<bool> in_place = in_place_states(p_);
    for (size_t i = 0; i < p_.states.size(); ++i) {
      const State& s = p_.states[i];
      bool safe = in_place[i] && root[s.after] == s.after;
      for (uint32_t v = 0; v < root.size() && safe && s.before != TUTTI_NONE; ++v)
        if (root[v] == s.before && v != s.before && last[v] != TUTTI_NONE) safe = last[v] < producer[s.after];
      if (safe) home_[s.after] = states_.at(s.name);
    }
  }

  // ---- launches

  uint32_t kernel_of(const dialect::Source& source, uint32_t buffers) {
    auto [it, fresh] = kernels_.try_emplace(source.text, static_cast<uint32_t>(plan_.kernels.size()));
    if (fresh)
      plan_.kernels.push_back(
          {source.text, source.entry, source.local, buffers, source.written, source.exact, source.texels});
    return it->second;
  }

  /// Adds the launches of one Work; its buffers are `in`, then `out`, then scratch.
  void add_work(const dialect::Work& work, const std::string& name, uint32_t node, const std::vector<uint32_t>& in,
                const std::vector<uint32_t>& out) {
    std::vector<uint32_t> buffers = in;
    buffers.insert(buffers.end(), out.begin(), out.end());
    for (uint64_t bytes : work.scratch_bytes) buffers.push_back(temporary(bytes, "scratch of " + name));
    for (uint32_t m : buffers) plan_.memories[m].last = std::max(plan_.memories[m].last, now_);
    for (const dialect::Dispatch& d : work.dispatches) {
      uint32_t kernel = d.library ? 0 : kernel_of(d.source, static_cast<uint32_t>(d.buffers.size()));
      PlannedLaunch launch{kernel, {}, d.groups, name, false, node, d.library};
      if (work.dispatches.size() > 1) launch.name += " (" + d.name + ")";
      for (int b : d.buffers) launch.memories.push_back(buffers.at(static_cast<size_t>(b)));
      plan_.launches.push_back(std::move(launch));
    }
    ++now_;
  }
  void add_copy(const std::string& name, uint32_t from, uint32_t to) {
    for (uint32_t m : {from, to}) plan_.memories[m].last = std::max(plan_.memories[m].last, now_);
    plan_.launches.push_back({0, {from, to}, {1, 1, 1}, name, true, TUTTI_NONE});
    ++now_;
  }

  /// Memory for a result: its state's where that is safe, else new.
  uint32_t result_memory(uint32_t v, const std::string& name) {
    uint32_t home = home_[v];
    if (home == TUTTI_NONE)
      home = temporary(num_bytes(p_.type(v)), fmt::format("{} of {}", to_string(p_.type(v)), name), v);
    return memory_[v] = home;
  }

  // ---- nodes

  /// The end of the group of that kind that holds node k; k + 1 where it is in none.
  uint32_t group_end(uint32_t k, uint32_t kind) const {
    for (const TuttiGroup& g : p_.groups)
      if (k >= g.first && k < g.first + g.count) return g.kind == kind ? g.first + g.count : k + 1;
    return k + 1;
  }

  std::string describe(const char* entry, uint32_t k, size_t more) const {
    const Node& n = p_.nodes[k];
    std::string text = fmt::format("{}: {}", entry, n.op);
    if (more) text += fmt::format(" + {}", more);
    return n.label.empty() ? text : text + " in " + n.label;
  }

  /// From here on the node counts as run.
  void finish(uint32_t k) {
    done_[k] = true;
    for (uint32_t v : p_.nodes[k].inputs) --remaining_[v];
  }

  void node(uint32_t k) {
    const Node& n = p_.nodes[k];
    RenderChoice choice = choose_rendered({p_, k, traits_});
    if (!choice.entry) throw NodeError(k, Code::declined, fmt::format("node {} ({}): {}", k, n.op, choice.reasons()));
    bool wanted = std::any_of(n.results.begin(), n.results.end(), [](uint32_t v) { return v != TUTTI_NONE; });
    if (trace_)
      trace_(fmt::format("node {} {} → {}{}", k, n.op, wanted ? choice.entry->name : "nothing, no result is read",
                         choice.declined.empty() ? "" : " (" + choice.reasons() + ")"));
    finish(k);
    if (!wanted) return;
    if (std::string_view(choice.entry->name) == elementwise_entry) return elementwise(k);
    if (std::string_view(choice.entry->name) == alias_entry) {
      memory_[n.results[0]] = memory_[n.inputs[0]];
      return;
    }
    structured(k, choice);
  }

  const Shape* result_shape(const Node& n) const {
    for (uint32_t v : n.results)
      if (v != TUTTI_NONE) return &p_.type(v).shape;
    return nullptr;
  }

  void elementwise(uint32_t k) {
    std::vector<uint32_t> nodes = {k};
    const Shape& shape = *result_shape(p_.nodes[k]);
    if (batch(k)) return;
    uint32_t end = group_end(k, TUTTI_CHAIN);
    for (uint32_t j = k + 1; j < end && !done_[j]; ++j) {
      const Node& n = p_.nodes[j];
      const Shape* other = result_shape(n);
      if (!n.elementwise() || !other || *other != shape || n.flags != p_.nodes[k].flags) break;
      RenderChoice choice = choose_rendered({p_, j, traits_});
      if (!choice.entry || std::string_view(choice.entry->name) != elementwise_entry) break;
      nodes.push_back(j);
      finish(j);
      if (arguments(nodes) <= traits_.max_arguments) continue;
      nodes.pop_back();
      done_[j] = false;
      for (uint32_t v : n.inputs) ++remaining_[v];
      break;
    }
    std::vector<bool> stored(p_.values.size());
    for (uint32_t v = 0; v < stored.size(); ++v) stored[v] = remaining_[v] > 0;
    Fusion f = fuse(p_, nodes, stored);
    if (trace_ && nodes.size() > 1) trace_(fmt::format("nodes {}..{} → one pass", k, nodes.back()));
    if (f.outputs.empty() || num_elements(f.dims) == 0) {
      for (uint32_t v : f.outputs) result_memory(v, "nothing");
      return;
    }
    std::string name = describe(elementwise_entry, k, nodes.size() - 1);
    std::vector<uint32_t> in, out;
    for (uint32_t v : f.inputs) in.push_back(memory_[v]);
    std::set<uint32_t> taken;
    for (uint32_t v : f.outputs) out.push_back(pass_output(v, f, in, taken, name));
    add_work(f.render(p_, traits_), name, k, in, out);
  }

  /// Node k and those of its batch group that one launch can hold, as passes of their own.
  std::vector<std::pair<uint32_t, Fusion>> twins(uint32_t k) const {
    std::vector<bool> stored(p_.values.size());
    for (uint32_t v = 0; v < stored.size(); ++v) stored[v] = remaining_[v] > 0;
    std::vector<std::pair<uint32_t, Fusion>> list;
    std::set<uint32_t> read;
    size_t written = 0;
    for (uint32_t j = k, end = group_end(k, TUTTI_BATCH); j < end; ++j) {
      const Node& n = p_.nodes[j];
      if ((j > k && done_[j]) || !n.elementwise()) continue;
      RenderChoice choice = choose_rendered({p_, j, traits_});
      if (!choice.entry || std::string_view(choice.entry->name) != elementwise_entry) continue;
      Fusion f = fuse(p_, {j}, stored);
      if (f.outputs.empty() || num_elements(f.dims) == 0 || (!list.empty() && !f.same_as(list[0].second, p_))) continue;
      read.insert(f.inputs.begin(), f.inputs.end());
      written += f.outputs.size();
      if (read.size() + written > traits_.max_arguments) break;
      list.emplace_back(j, std::move(f));
    }
    return list;
  }

  /// One launch for the twins of node k, where it has some: an optimizer's many tensors.
  bool batch(uint32_t k) {
    // lavapipe runs both sides of a branch, so every group would compute every tensor's share.
    if (traits_.cpu_like && traits_.language == Language::glsl) return false;
    std::vector<std::pair<uint32_t, Fusion>> list = twins(k);
    if (list.size() < 2 || list[0].first != k) return false;
    for (auto& [j, f] : list)
      if (j != k) finish(j);
    if (trace_) trace_(fmt::format("nodes {}..{} → one launch over {} tensors", k, list.back().first, list.size()));
    std::string name = describe(elementwise_entry, k, list.size() - 1);
    std::vector<uint32_t> values, in, out;
    std::map<uint32_t, std::set<uint32_t>> readers;  // memory → nodes
    for (auto& [j, f] : list)
      for (uint32_t v : f.inputs) {
        readers[memory_[v]].insert(j);
        if (std::find(values.begin(), values.end(), v) == values.end()) values.push_back(v), in.push_back(memory_[v]);
      }
    std::vector<dialect::Piece> pieces;
    std::set<uint32_t> taken;
    for (auto& [j, f] : list) {
      dialect::Piece piece{f.dims, f.operands(p_), {}, {}};
      std::vector<uint32_t> own;
      for (uint32_t v : f.inputs) {
        piece.from.push_back(static_cast<int>(std::find(values.begin(), values.end(), v) - values.begin()));
        own.push_back(memory_[v]);
      }
      std::set<uint32_t> kept = taken;  // what other nodes of the launch read may not be written over
      for (auto& [memory, nodes] : readers)
        if (nodes.size() > 1 || !nodes.contains(j)) kept.insert(memory);
      for (uint32_t v : f.outputs) {
        piece.to.push_back(static_cast<int>(in.size() + out.size()));
        out.push_back(pass_output(v, f, own, kept, name));
        taken.insert(out.back());
      }
      pieces.push_back(std::move(piece));
    }
    const Fusion& first = list[0].second;
    add_work(dialect::elementwise_batch(traits_, first.code, pieces, first.types(p_), first.exact), name, k, in, out);
    return true;
  }

  /// How many buffers a pass over these nodes (all finished) reads and writes.
  size_t arguments(const std::vector<uint32_t>& nodes) const {
    std::set<uint32_t> made, used;
    for (uint32_t j : nodes) {
      for (uint32_t v : p_.nodes[j].inputs)
        if (!made.contains(v)) used.insert(v);
      made.insert(p_.nodes[j].results.begin(), p_.nodes[j].results.end());
    }
    made.erase(TUTTI_NONE);
    return used.size() +
           static_cast<size_t>(std::count_if(made.begin(), made.end(), [&](uint32_t v) { return remaining_[v] > 0; }));
  }

  /// Where a fused pass writes a result: over an operand that is read element by element, where that is the state's old
  /// value or dies here.
  uint32_t pass_output(uint32_t v, const Fusion& f, const std::vector<uint32_t>& in, std::set<uint32_t>& taken,
                       const std::string& name) {
    size_t element = size_of(p_.type(v).dtype);
    int64_t count = num_elements(f.dims);
    auto overwritable = [&](uint32_t memory) {
      for (size_t i = 0; i < in.size(); ++i) {
        const TensorType& t = p_.type(f.inputs[i]);
        if (in[i] == memory && (size_of(t.dtype) != element || num_elements(t.shape) != count)) return false;
      }
      return true;
    };
    if (uint32_t home = home_[v]; home != TUTTI_NONE) {
      if (overwritable(home) && taken.insert(home).second) return memory_[v] = home;
      home_[v] = TUTTI_NONE;
    }
    for (size_t i = 0; i < in.size(); ++i) {
      uint32_t m = in[i];
      if (plan_.memories[m].place != Place::arena || taken.contains(m) ||
          num_elements(p_.type(f.inputs[i]).shape) != count)
        continue;
      if (!overwritable(m) || !is_dead(m)) continue;
      taken.insert(m);
      return memory_[v] = m;
    }
    return result_memory(v, name);
  }

  /// Whether nothing that has not run yet reads this memory, under whatever name.
  bool is_dead(uint32_t memory) const {
    for (uint32_t v = 0; v < memory_.size(); ++v)
      if (memory_[v] == memory && remaining_[v] > 0) return false;
    return true;
  }

  // ---- products take the bias and the relu behind them along

  uint32_t only_reader(uint32_t v) const {
    return readers_[v].size() == 1 && remaining_[v] == 1 ? readers_[v][0] : TUTTI_NONE;
  }
  uint32_t reshape_of(uint32_t v) const {
    for (uint32_t k = 0; k < p_.nodes.size(); ++k)
      if (p_.nodes[k].op == "reshape" && !p_.nodes[k].inputs.empty() && p_.nodes[k].results[0] == v) return k;
    return TUTTI_NONE;
  }
  /// Whether a value is there, or is another shape of one that is.
  bool exists(uint32_t v) const {
    if (memory_[v] != TUTTI_NONE) return true;
    uint32_t k = reshape_of(v);
    return k != TUTTI_NONE && exists(p_.nodes[k].inputs[0]);
  }
  /// Runs the reshapes that a value of exists() still needs.
  void ensure(uint32_t v) {
    if (memory_[v] != TUTTI_NONE) return;
    uint32_t k = reshape_of(v);
    ensure(p_.nodes[k].inputs[0]);
    node(k);
  }

  /// The plain elementwise node that alone reads v and keeps its type, or null.
  const Node* follower(uint32_t v) const {
    uint32_t k = only_reader(v);
    if (k == TUTTI_NONE || done_[k]) return nullptr;
    const Node& n = p_.nodes[k];
    bool plain = n.elementwise() && n.version == 1 && n.flags == 0 && n.unknown.empty() && n.results.size() == 1;
    return plain && n.results[0] != TUTTI_NONE && p_.type(n.results[0]) == p_.type(v) ? &n : nullptr;
  }

  /// Whether `bias` is one number per index of an axis of y, counted from the last.
  bool is_bias(uint32_t bias, const TensorType& y, size_t from_last) const {
    const TensorType& t = p_.type(bias);
    if (t.dtype != y.dtype || t.shape.size() <= from_last || t.shape.size() > y.shape.size()) return false;
    int64_t size = y.shape[y.shape.size() - 1 - from_last];
    return t.shape[t.shape.size() - 1 - from_last] == size && num_elements(t.shape) == size;
  }

  /// Finishes the nodes behind node k that its kernel can take along: their number, and the result and inputs with
  /// them.
  size_t take_along(uint32_t k, const char* entry, RenderCase& c, std::vector<uint32_t>& inputs, uint32_t& result) {
    const Node& n = p_.nodes[k];
    std::string_view by = entry;
    bool product = n.op == "matmul" && (by == matmul_entry || by == library_entry);
    bool conv = n.op == "conv2d" && (by == conv_entry || by == library_entry);
    bool nothing =
        std::any_of(n.inputs.begin(), n.inputs.end(), [&](uint32_t v) { return num_elements(p_.type(v).shape) == 0; });
    if ((!product && !conv) || nothing) return 0;
    size_t more = 0;
    if (const Node* add = follower(result)) {
      uint32_t bias = added_to(*add, result);
      if (bias != TUTTI_NONE && is_bias(bias, p_.type(result), conv ? 2 : 0) && exists(bias)) {
        ensure(bias);
        finish(readers_[result][0]);
        inputs.push_back(bias);
        result = add->results[0];
        c.epilogue.bias = true;
        ++more;
      }
    }
    if (const Node* relu = follower(result); relu && is_relu(*relu)) {
      finish(readers_[result][0]);
      result = relu->results[0];
      c.epilogue.relu = true;
      ++more;
    }
    // It is computed earlier than its node stands: the state's old value may still be read.
    if (more && home_[result] != TUTTI_NONE && !is_dead(home_[result])) home_[result] = TUTTI_NONE;
    if (trace_ && more) trace_(fmt::format("node {} {} takes {} more node(s) along", k, n.op, more));
    return more;
  }

  /// The work of a chosen entry; where a library does not take the epilogue along, the portable kernel does.
  dialect::Work made(const RenderChoice& choice, const RenderCase& c) const {
    if (std::string_view(choice.entry->name) != library_entry) return choice.entry->make(c);
    try {
      return choice.entry->make(c);
    } catch (const Error& e) {
      if (e.code != Code::declined) throw;
      if (trace_) trace_(fmt::format("node {}: {}: {}", c.number, library_entry, e.what()));
    }
    Traits plain = traits_;
    plain.library = nullptr;
    RenderCase portable{c.program, c.number, plain, c.epilogue};
    RenderChoice other = choose_rendered(portable);
    if (!other.entry) throw NodeError(c.number, Code::declined, other.reasons());
    return other.entry->make(portable);
  }

  void structured(uint32_t k, const RenderChoice& choice) {
    const Node& n = p_.nodes[k];
    RenderCase c{p_, k, traits_};
    std::vector<uint32_t> inputs = n.inputs, results = n.results;
    size_t more = take_along(k, choice.entry->name, c, inputs, results[0]);
    std::string name = describe(choice.entry->name, k, more);
    std::vector<uint32_t> in, out;
    for (uint32_t v : inputs) in.push_back(memory_[v]);
    dialect::Work work = made(choice, c);
    for (uint32_t result : results) {
      if (result == TUTTI_NONE) continue;
      if (home_[result] != TUTTI_NONE && std::find(in.begin(), in.end(), home_[result]) != in.end())
        home_[result] = TUTTI_NONE;
      out.push_back(result_memory(result, name));
    }
    if (!work.dispatches.empty()) add_work(work, name, k, in, out);
  }

  // ---- the end of the step

  /// States that were not computed in place are copied; what another copy overwrites is saved first.
  void copy_states() {
    struct Move {
      uint32_t from, to;
      std::string state;
    };
    std::vector<Move> moves;
    std::set<uint32_t> overwritten;
    for (const State& s : p_.states) {
      uint32_t to = states_.at(s.name), from = memory_[s.after];
      if (s.after == s.before || from == to || num_elements(p_.type(s.after).shape) == 0) continue;
      moves.push_back({from, to, s.name});
      overwritten.insert(to);
    }
    for (Move& m : moves) {
      if (!overwritten.contains(m.from)) continue;
      uint32_t saved = temporary(plan_.memories[m.from].bytes, "the saved state '" + m.state + "'");
      add_copy(fmt::format("save for state '{}'", m.state), m.from, saved);
      m.from = saved;
    }
    for (const Move& m : moves) add_copy(fmt::format("copy to state '{}'", m.state), m.from, m.to);
  }

  // ---- memory

  uint64_t aligned(uint64_t bytes) const {
    return (bytes + traits_.alignment - 1) / traits_.alignment * traits_.alignment;
  }

  void plan_memory() {
    std::vector<uint32_t> arena;
    for (uint32_t m = 0; m < plan_.memories.size(); ++m) {
      PlannedMemory& memory = plan_.memories[m];
      if (memory.place == Place::arena) arena.push_back(m);
      if (memory.place == Place::feed) {
        memory.offset = aligned(plan_.staging);
        plan_.staging = memory.offset + memory.bytes;
      }
      if (memory.place == Place::constant) {
        uint64_t at = plan_.constants.empty() ? 0 : aligned(plan_.constants.back());
        if (plan_.constants.empty() || at + memory.bytes > traits_.max_allocation_bytes) {
          plan_.constants.push_back(0);
          at = 0;
        }
        memory.block = static_cast<uint32_t>(plan_.constants.size() - 1);
        memory.offset = at;
        plan_.constants.back() = at + memory.bytes;
      }
    }
    plan_arenas(arena);
  }

  Slot slot(uint32_t m) const { return {plan_.memories[m].bytes, plan_.memories[m].first, plan_.memories[m].last}; }

  /// One arena, or several where the device allocates less at once: the largest first, each in the first arena it fits
  /// in.
  void plan_arenas(std::vector<uint32_t> ids) {
    if (ids.empty()) return;
    std::vector<std::vector<uint32_t>> blocks = {ids};
    std::vector<ArenaPlan> plans = {plan_block(ids)};
    if (plans[0].bytes > traits_.max_allocation_bytes) {
      std::stable_sort(ids.begin(), ids.end(),
                       [&](uint32_t a, uint32_t b) { return plan_.memories[a].bytes > plan_.memories[b].bytes; });
      blocks.clear();
      plans.clear();
      for (uint32_t m : ids) {
        bool placed = false;
        for (size_t b = 0; b < blocks.size() && !placed; ++b) {
          blocks[b].push_back(m);
          ArenaPlan plan = plan_block(blocks[b]);
          placed = plan.bytes <= traits_.max_allocation_bytes;
          if (placed)
            plans[b] = std::move(plan);
          else
            blocks[b].pop_back();
        }
        if (placed) continue;
        blocks.push_back({m});
        plans.push_back(plan_block(blocks.back()));
      }
    }
    for (size_t b = 0; b < blocks.size(); ++b) {
      plan_.arena.push_back(plans[b].bytes);
      for (size_t i = 0; i < blocks[b].size(); ++i) {
        plan_.memories[blocks[b][i]].block = static_cast<uint32_t>(b);
        plan_.memories[blocks[b][i]].offset = plans[b].offsets[i];
      }
    }
  }
  ArenaPlan plan_block(const std::vector<uint32_t>& ids) const {
    std::vector<Slot> slots;
    for (uint32_t m : ids) slots.push_back(slot(m));
    return plan_arena(slots, traits_.alignment);
  }

  const Program& p_;
  const Traits& traits_;
  const std::function<void(const std::string&)>& trace_;
  std::vector<uint32_t> memory_;                // per value: where it lies, or NONE
  std::vector<uint32_t> home_;                  // per value: the state memory it is computed in, or NONE
  std::vector<bool> done_;                      // per node
  std::vector<std::vector<uint32_t>> readers_;  // per value: nodes
  std::vector<uint32_t> remaining_;  // per value: how many of its readers (nodes and states) have not run yet
  std::map<std::string, uint32_t> states_, kernels_;
  uint32_t now_ = 0;
  RenderedPlan plan_;
};

}  // namespace

namespace {

/// Elementwise nodes broadcast by themselves: where they alone read a broadcast, they read its source, and nothing is
/// left of it.
void absorb_broadcasts(Program& p) {
  std::vector<bool> fixed(p.values.size());  // read by something that needs the whole tensor
  for (const State& s : p.states) fixed[s.after] = true;
  for (const Node& n : p.nodes)
    for (uint32_t v : n.inputs)
      if (!n.elementwise()) fixed[v] = true;
  std::vector<uint32_t> source(p.values.size(), TUTTI_NONE);
  for (Node& n : p.nodes) {
    for (uint32_t& v : n.inputs)
      if (source[v] != TUTTI_NONE) v = source[v];
    if (n.op != "broadcast" || n.inputs.size() != 1 || n.results.size() != 1 || n.results[0] == TUTTI_NONE ||
        fixed[n.results[0]])
      continue;
    source[n.results[0]] = n.inputs[0];
    n.results[0] = TUTTI_NONE;
  }
}

}  // namespace

RenderedPlan plan_rendered(Program program, const Traits& traits,
                           const std::function<void(const std::string&)>& trace) {
  absorb_broadcasts(program);
  return Planner(program, traits, trace).run();
}

}  // namespace tutti::sdk
