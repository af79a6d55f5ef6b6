#include "sdk/rendered_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kernels/dialect/kernel.h"
#include "sdk/rendered_arena.h"
#include "sdk/rendered_memory.h"
#include "sdk/rendered_planner.h"

namespace tutti::sdk {

RenderedPlan Planner::run() {
  place_values();
  find_homes();
  for (uint32_t k = 0; k < p_.nodes.size(); ++k)
    if (!done_[k]) node(k);
  copy_states();
  place_memories(plan_, traits_);
  return std::move(plan_);
}

uint32_t Planner::add_memory(PlannedMemory m) {
  m.bytes = padded(m.bytes);
  plan_.memories.push_back(std::move(m));
  return static_cast<uint32_t>(plan_.memories.size() - 1);
}

uint32_t Planner::temporary(uint64_t bytes, std::string what, uint32_t value) {
  return add_memory({.bytes = bytes, .value = value, .what = std::move(what), .first = now_, .last = now_});
}

void Planner::place_values() {
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
      hold(v, add_memory({.place = Place::feed,
                          .bytes = bytes,
                          .value = v,
                          .what = fmt::format("{} of feed '{}'", type, value.name)}));
    if (value.role == TUTTI_CONST)
      hold(v, add_memory({.place = Place::constant, .bytes = bytes, .value = v, .what = type + " of a constant"}));
    if (value.role == TUTTI_STATE) hold(v, states_.at(value.name));
  }
}

void Planner::find_homes() {
  std::vector<bool> home = home_states(p_);
  for (size_t i = 0; i < p_.states.size(); ++i)
    if (home[i]) home_[p_.states[i].after] = states_.at(p_.states[i].name);
}

// ---- launches

uint32_t Planner::kernel_of(const dialect::Kernel& kernel) {
  KernelSource source = dialect::render(traits_, kernel);
  auto [it, fresh] = kernels_.try_emplace(source.text, static_cast<uint32_t>(plan_.kernels.size()));
  if (fresh) plan_.kernels.push_back(std::move(source));
  return it->second;
}

void Planner::check_library(const dialect::LaunchList& work, uint32_t node, size_t operands) const {
  auto wrong = [&](const std::string& why) {
    return NodeError(
        node, Code::internal,
        fmt::format("node {} ({}): the device's library gave a wrong LaunchList: {}", node, p_.nodes[node].op, why),
        "a LaunchList's buffers are the inputs, the results that the LibraryRequest asks for, then its scratch");
  };
  size_t all = operands + work.scratch_bytes.size();
  std::vector<bool> used(all);
  for (const dialect::Launch& d : work.launches) {
    if (!d.library && !d.kernel) throw wrong(fmt::format("'{}' has neither a call nor a kernel", d.name));
    for (int b : d.buffers) {
      if (b < 0 || static_cast<size_t>(b) >= all) throw wrong(fmt::format("'{}' uses buffer {} of {}", d.name, b, all));
      used[static_cast<size_t>(b)] = true;
    }
  }
  auto unused = std::find(used.begin(), used.end(), false);
  if (unused != used.end()) throw wrong(fmt::format("nothing uses buffer {} of {}", unused - used.begin(), all));
}

void Planner::add_work(const dialect::LaunchList& work, const std::string& name, uint32_t node,
                       const std::vector<uint32_t>& in, const std::vector<uint32_t>& out) {
  std::vector<uint32_t> buffers = in;
  buffers.insert(buffers.end(), out.begin(), out.end());
  for (uint64_t bytes : work.scratch_bytes) buffers.push_back(temporary(bytes, "scratch of " + name));
  for (uint32_t m : buffers) plan_.memories[m].last = std::max(plan_.memories[m].last, now_);
  for (const dialect::Launch& d : work.launches) {
    auto memory = [&](int b) { return buffers.at(static_cast<size_t>(b)); };
    PlannedLaunch launch{d.with(d.library ? 0 : kernel_of(*d.kernel), memory), node};
    launch.name = work.launches.size() > 1 ? name + " (" + d.name + ")" : name;
    plan_.launches.push_back(std::move(launch));
  }
  ++now_;
}

void Planner::add_copy(const std::string& name, uint32_t from, uint32_t to) {
  for (uint32_t m : {from, to}) plan_.memories[m].last = std::max(plan_.memories[m].last, now_);
  plan_.launches.push_back({{0, {from, to}, {1, 1, 1}, name, true}});
  ++now_;
}

uint32_t Planner::result_memory(uint32_t v, const std::string& name) {
  uint32_t home = home_[v];
  if (home == TUTTI_NONE)
    home = temporary(num_bytes(p_.type(v)), fmt::format("{} of {}", to_string(p_.type(v)), name), v);
  return hold(v, home);
}

// ---- nodes

std::string Planner::describe(const char* entry, uint32_t k, size_t more) const {
  const Node& n = p_.nodes[k];
  std::string text = fmt::format("{}: {}", entry, n.op);
  if (more) text += fmt::format(" + {}", more);
  return n.label.empty() ? text : text + " in " + n.label;
}

void Planner::finish(uint32_t k) {
  done_[k] = true;
  for (uint32_t v : p_.nodes[k].inputs) --remaining_[v];
}

void Planner::node(uint32_t k) {
  if (with_operand_sum(k)) return;
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
    hold(n.results[0], memory_[n.inputs[0]]);
    return;
  }
  structured(k, choice);
}

dialect::LaunchList Planner::made(const RenderChoice& choice, const RenderCase& c) const {
  if (std::string_view(choice.entry->name) != library_entry) return choice.entry->make(c);
  try {
    return choice.entry->make(c);
  } catch (const Error& e) {
    if (e.code != Code::declined || c.epilogue.gelu != Gelu::none) throw;  // no portable product takes a gelu along
    if (trace_) trace_(fmt::format("node {}: {}: {}", c.number, library_entry, e.what()));
  }
  Traits plain = traits_;
  plain.library = nullptr;
  RenderCase portable{c.program, c.number, plain, c.epilogue};
  RenderChoice other = choose_rendered(portable);
  if (!other.entry) throw NodeError(c.number, Code::declined, other.reasons());
  return other.entry->make(portable);
}

void Planner::structured(uint32_t k, const RenderChoice& choice) {
  const Node& n = p_.nodes[k];
  RenderCase c{p_, k, traits_, {}, true, tuning_bytes_};
  std::vector<uint32_t> inputs = n.inputs, results = n.results;
  size_t more = take_along(k, *choice.entry, c, inputs, results);
  std::string name = describe(choice.entry->name, k, more);
  std::vector<uint32_t> in, out;
  for (uint32_t v : inputs) in.push_back(memory_[v]);
  dialect::LaunchList work = made(choice, c);
  if (std::string_view(choice.entry->name) == library_entry)
    check_library(work, k,
                  inputs.size() + static_cast<size_t>(std::count_if(results.begin(), results.end(),
                                                                    [](uint32_t v) { return v != TUTTI_NONE; })));
  for (uint32_t result : results) {
    if (result == TUTTI_NONE) continue;
    if (home_[result] != TUTTI_NONE && std::find(in.begin(), in.end(), home_[result]) != in.end())
      home_[result] = TUTTI_NONE;
    out.push_back(result_memory(result, name));
  }
  if (!work.launches.empty()) add_work(work, name, k, in, out);
}

uint32_t Planner::hold(uint32_t v, uint32_t memory) {
  holders_.resize(plan_.memories.size());
  holders_[memory].push_back(v);
  return memory_[v] = memory;
}

bool Planner::is_dead(uint32_t memory) {
  if (memory >= holders_.size()) return true;
  std::erase_if(holders_[memory], [&](uint32_t v) { return remaining_[v] == 0; });
  return holders_[memory].empty();
}

// ---- the end of the step

void Planner::copy_states() {
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

RenderedPlan plan_rendered(Program program, const Traits& traits, const std::function<void(const std::string&)>& trace,
                           uint64_t tuning_bytes) {
  absorb_broadcasts(program);
  return Planner(program, traits, trace, tuning_bytes).run();
}

}  // namespace tutti::sdk
