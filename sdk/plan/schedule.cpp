#include "sdk/plan/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "sdk/plan/liveness.h"

namespace tutti::sdk {

Schedule::Schedule(const Program& program, const Trace& trace)
    : p_(program),
      trace_(trace),
      held_(p_.values.size()),
      home_(p_.values.size(), TUTTI_NONE),
      done_(p_.nodes.size()),
      reasons_(p_.nodes.size()),
      readers_(p_.values.size()),
      remaining_(p_.values.size()),
      chain_end_(group_ends(p_, TUTTI_CHAIN)),
      reshape_of_(reshapes(p_)) {
  for (uint32_t k = 0; k < p_.nodes.size(); ++k)
    for (uint32_t v : p_.nodes[k].inputs) readers_[v].push_back(k), ++remaining_[v];
  for (const State& s : p_.states) ++remaining_[s.after];
}

void Schedule::walk() {
  Externals externals = add_externals(p_, memories_);
  std::vector<bool> home = home_states(p_);
  for (size_t i = 0; i < home.size(); ++i)
    if (home[i]) home_[p_.states[i].after] = externals.states[i];
  for (uint32_t v = 0; v < externals.values.size(); ++v)
    if (externals.values[v] != TUTTI_NONE) hold(v, externals.values[v]);
  for (uint32_t k = 0; k < p_.nodes.size(); ++k)
    if (!done_[k]) node(k);
  copy_states(externals.states);
}

void Schedule::copy_states(const std::vector<uint32_t>& states) {
  std::vector<StateCopy> copies = state_copies(p_, states, [&](uint32_t v) { return row_major(v); });
  for (StateCopy& c : copies) {
    if (!c.saved) continue;
    const State& s = p_.states[c.state];
    uint32_t saved = temporary(memories_[c.from].bytes, "the saved state '" + s.name + "'");
    copy(p_.type(s.after), fmt::format("save for state '{}'", s.name), c.from, saved);
    c.from = saved;
  }
  for (const StateCopy& c : copies) {
    const State& s = p_.states[c.state];
    copy(p_.type(s.after), fmt::format("copy to state '{}'", s.name), c.from, c.to);
  }
}

// ---- steps and memory

uint32_t Schedule::add_memory(PlannedMemory m) {
  memories_.push_back(std::move(m));
  return static_cast<uint32_t>(memories_.size() - 1);
}

uint32_t Schedule::temporary(uint64_t bytes, std::string what, uint32_t value) {
  return add_memory({.bytes = bytes, .value = value, .what = std::move(what), .first = now_, .last = now_});
}

void Schedule::step(std::span<const uint32_t> in, std::span<const uint32_t> out) {
  for (auto list : {in, out})
    for (uint32_t m : list)
      if (m != TUTTI_NONE) memories_[m].last = std::max(memories_[m].last, now_);
  ++now_;
}

uint32_t Schedule::result_memory(uint32_t v, uint64_t bytes, const std::string& name) {
  if (home_[v] != TUTTI_NONE) return home_[v];
  return temporary(bytes, fmt::format("{} of {}", to_string(p_.type(v)), name), v);
}

void Schedule::hold(uint32_t v, uint32_t memory) {
  held_[v].push_back(memory);
  holders_.resize(memories_.size());
  holders_[memory].push_back(v);
}

bool Schedule::is_dead(uint32_t memory) {
  if (memory >= holders_.size()) return true;
  std::erase_if(holders_[memory], [&](uint32_t v) { return remaining_[v] == 0; });
  return holders_[memory].empty();
}

void Schedule::leave_home(uint32_t v) {
  if (home_[v] != TUTTI_NONE && !is_dead(home_[v])) home_[v] = TUTTI_NONE;
}

uint32_t Schedule::overwritten(uint32_t v, std::span<const PassOperand> in, std::set<uint32_t>& taken) {
  size_t element = size_of(p_.type(v).dtype);
  auto overwritable = [&](uint32_t memory) {
    return std::none_of(in.begin(), in.end(),
                        [&](const PassOperand& o) { return o.memory == memory && (o.element != element || !o.dense); });
  };
  if (uint32_t home = home_[v]; home != TUTTI_NONE) {
    if (overwritable(home) && taken.insert(home).second) return home;
    home_[v] = TUTTI_NONE;
  }
  for (const PassOperand& o : in) {
    if (o.memory == TUTTI_NONE || memories_[o.memory].place != Place::arena || taken.contains(o.memory)) continue;
    if (!overwritable(o.memory) || !is_dead(o.memory)) continue;
    taken.insert(o.memory);
    return o.memory;
  }
  return TUTTI_NONE;
}

// ---- nodes

bool Schedule::begin(uint32_t k, const char* entry, const std::string& reasons) {
  const Node& n = p_.nodes[k];
  if (!entry) throw NodeError(k, Code::declined, fmt::format("node {} ({}): {}", k, n.op, reasons));
  bool wanted = result_shape(n) != nullptr;
  if (trace_)
    trace_(fmt::format("node {} {} → {}{}", k, n.op, wanted ? entry : "nothing, no result is read",
                       reasons.empty() ? "" : " (" + reasons + ")"));
  finish(k);
  reasons_[k] = reasons;
  return wanted;
}

void Schedule::finish(uint32_t k) {
  done_[k] = true;
  for (uint32_t v : p_.nodes[k].inputs) --remaining_[v];
}

void Schedule::undo(uint32_t k) {
  done_[k] = false;
  for (uint32_t v : p_.nodes[k].inputs) ++remaining_[v];
}

std::string Schedule::describe(const char* entry, uint32_t k, size_t more) const {
  const Node& n = p_.nodes[k];
  std::string text = fmt::format("{}: {}", entry, n.op);
  if (more) text += fmt::format(" + {}", more);
  return n.label.empty() ? text : text + " in " + n.label;
}

const Shape* Schedule::result_shape(const Node& n) const {
  for (uint32_t v : n.results)
    if (v != TUTTI_NONE) return &p_.type(v).shape;
  return nullptr;
}

}  // namespace tutti::sdk
