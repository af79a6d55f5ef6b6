#include "sdk/rendered/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/codegen/kernel.h"
#include "sdk/plan/poison.h"
#include "sdk/rendered/memory.h"
#include "sdk/rendered/planner.h"

namespace tutti::sdk {

RenderedPlan Planner::run() {
  walk();
  if (traits_.cpu_like)
    join_small_launches();
  else
    share_launches();
  drop_unused_kernels();
  plan_.memories = std::move(memories_);
  for (PlannedMemory& m : plan_.memories) m.bytes = padded(m.bytes);
  place_memories(plan_, traits_.alignment, traits_.max_allocation_bytes);
  return std::move(plan_);
}

// ---- launches

/// Converts a launch; its buffers are indices into `buffers`. Adds the kernel if its text is new, and its numbers as a
/// constant.
PlannedLaunch Planner::launch_of(const codegen::Launch& launch, const KernelSource& source,
                                 const std::vector<uint32_t>& buffers, const std::string& name) {
  auto memory = [&](int b) { return buffers.at(static_cast<size_t>(b)); };
  if (launch.library || launch.copy) return {launch.with(0u, memory)};
  const std::vector<uint32_t>& numbers = source.numbers;
  auto [it, fresh] = kernels_.try_emplace(source.text, static_cast<uint32_t>(plan_.kernels.size()));
  if (fresh) {
    plan_.kernels.push_back(source);
    plan_.kernels.back().numbers.clear();
  }
  PlannedLaunch planned{launch.with(it->second, memory)};
  if (numbers.empty()) return planned;
  auto [known, unknown] = numbers_.try_emplace(numbers, 0);
  if (unknown)
    known->second = add_memory(
        {.place = Place::constant, .bytes = 4 * numbers.size(), .words = numbers, .what = "numbers of " + name});
  planned.buffers.push_back(known->second);
  return planned;
}

void Planner::check_library(const codegen::LaunchList& work, uint32_t node, size_t operands) const {
  auto wrong = [&](const std::string& why) {
    return NodeError(node, Code::internal,
                     fmt::format("node {} ({}): the device's library returned an invalid LaunchList: {}", node,
                                 p_.nodes[node].op, why),
                     "the buffers of a LaunchList must be the inputs, then the results requested by the "
                     "LibraryRequest, then its scratch buffers");
  };
  size_t all = operands + work.scratch_bytes.size();
  std::vector<bool> used(all);
  for (const codegen::Launch& d : work.launches) {
    if (!d.library && !d.kernel) throw wrong(fmt::format("'{}' has neither a library call nor a kernel", d.name));
    for (int b : d.buffers) {
      if (b < 0 || static_cast<size_t>(b) >= all)
        throw wrong(fmt::format("'{}' uses buffer {}, but there are only {} buffers", d.name, b, all));
      used[static_cast<size_t>(b)] = true;
    }
  }
  auto unused = std::find(used.begin(), used.end(), false);
  if (unused != used.end())
    throw wrong(fmt::format("buffer {} of {} is not used by any launch", unused - used.begin(), all));
}

void Planner::poison_results(uint32_t node, const std::vector<uint32_t>& buffers, size_t inputs) {
  auto read = buffers.begin() + static_cast<std::ptrdiff_t>(inputs);
  for (auto b = read; b != buffers.end(); ++b) {
    if (std::find(buffers.begin(), read, *b) != read) continue;
    const PlannedMemory& m = memories_[*b];
    if (m.bytes == 0) continue;
    RenderedWork fill = rendered(traits_, codegen::fill(traits_, DType::i32, static_cast<int64_t>(padded(m.bytes) / 4),
                                                        static_cast<double>(poison)));
    std::string name = "poison of " + m.what;
    PlannedLaunch launch = launch_of(fill.list.launches.at(0), fill.sources.at(0), {*b}, name);
    launch.node = node;
    launch.name = name;
    plan_.launches.push_back(std::move(launch));
  }
}

std::vector<uint32_t> Planner::add_work(const RenderedWork& work, const std::string& name, uint32_t node,
                                        const std::vector<uint32_t>& in, const std::vector<uint32_t>& out) {
  const codegen::LaunchList& list = work.list;
  std::vector<uint32_t> buffers = in;
  buffers.insert(buffers.end(), out.begin(), out.end());
  for (uint64_t bytes : list.scratch_bytes) buffers.push_back(temporary(bytes, "scratch of " + name));
  if (poisons()) poison_results(node, buffers, in.size());
  for (size_t k = 0; k < list.launches.size(); ++k) {
    const codegen::Launch& d = list.launches[k];
    PlannedLaunch launch = launch_of(d, work.sources[k], buffers, name);
    launch.node = node;
    launch.reason = reasons_[node];
    const bool products = d.kernel && !d.kernel->words.empty();  // of a unit that not every device has
    launch.name = list.launches.size() > 1 || products ? name + " (" + d.name + ")" : name;
    if (d.kernel) made_[plan_.launches.size()] = {d, now()};
    plan_.launches.push_back(std::move(launch));
  }
  step(buffers, {});
  return buffers;
}

void Planner::copy(const TensorType&, const std::string& name, uint32_t from, uint32_t to) {
  plan_.launches.push_back({{0, {from, to}, {1, 1, 1}, name, true}});
  step(std::array{from, to}, {});
}

std::vector<uint32_t> Planner::memories_of(const std::vector<uint32_t>& values) const {
  std::vector<uint32_t> list;
  for (uint32_t v : values) list.push_back(memory_of(v));
  return list;
}

uint32_t Planner::place_result(uint32_t v, const std::string& name, const std::vector<uint32_t>& in) {
  if (std::find(in.begin(), in.end(), home_[v]) != in.end()) home_[v] = TUTTI_NONE;
  uint32_t memory = result_memory(v, num_bytes(p_.type(v)), name);
  hold(v, memory);
  return memory;
}

// ---- nodes

void Planner::node(uint32_t k) {
  if (with_operand_sum(k) || view(k) || rows(k)) return;
  const Node& n = p_.nodes[k];
  const RenderChoice& choice = preferred(k);
  if (!begin(k, choice.name(), choice.reasons())) return;
  if (choice.entry->can.elementwise) return elementwise(k, choice.name());
  if (choice.entry->can.alias) return hold(n.results[0], memory_of(n.inputs[0]));
  if (n.op == "tutti.exchange") return exchange(k);
  structured(k, choice);
}

const RenderChoice& Planner::preferred(uint32_t k) {
  const RenderChoice& choice = cache_.choice(p_, k);
  if (!choice.entry || !choice.entry->can.compared) return choice;
  RenderNodeView c{p_, k, traits_, {}, true, tuning_bytes_, true};
  std::string why;
  try {
    choice.entry->make(c);
    return choice;
  } catch (const Error& e) {
    if (e.code != Code::declined) throw;
    why = e.what();
  }
  Traits plain = traits_;
  plain.library = nullptr;
  portable_ = choose_rendered({.program = p_, .number = k, .traits = plain, .declined = true});
  if (!portable_.entry) return choice;
  portable_.declined.emplace(portable_.declined.begin(), choice.name(), why);
  return portable_;
}

const RenderedWork& Planner::made(const RenderChoice& choice, const RenderNodeView& c, size_t operands) {
  if (!choice.entry->can.library) return cache_.work(*choice.entry, c);
  try {
    library_work_ = rendered(traits_, choice.entry->make(c));
    check_library(library_work_.list, c.number, operands);
    return library_work_;
  } catch (const Error& e) {
    if (e.code != Code::declined || c.epilogue.gelu != Gelu::none) throw;  // portable products do not support gelu
    if (trace_) trace_(fmt::format("node {}: {}: {}", c.number, choice.name(), e.what()));
  }
  Traits plain = traits_;
  plain.library = nullptr;
  RenderNodeView portable{c.program, c.number, plain, c.epilogue};
  portable.declined = true;
  portable.views = c.views;
  portable.places = c.places;
  RenderChoice other = choose_rendered(portable);
  if (!other.entry) throw NodeError(c.number, Code::declined, other.reasons());
  return library_work_ = rendered(traits_, other.entry->make(portable));
}

uint32_t Planner::overwritten_input(const Node& n, const Capabilities& can) {
  if (!can.in_place) return TUTTI_NONE;
  auto [input, result] = *can.in_place;
  uint32_t from = n.inputs[input], to = n.results[result], memory = memory_of(from);
  if (to == TUTTI_NONE || home_[to] != TUTTI_NONE || p_.type(from) != p_.type(to)) return TUTTI_NONE;
  bool read_twice = std::ranges::count_if(n.inputs, [&](uint32_t v) { return memory_of(v) == memory; }) > 1;
  bool ours = memories_[memory].place == Place::arena;
  return !read_twice && ours && is_dead(memory) ? memory : TUTTI_NONE;
}

void Planner::structured(uint32_t k, const RenderChoice& choice) {
  const Node& n = p_.nodes[k];
  RenderNodeView c{p_, k, traits_, {}, true, tuning_bytes_};
  std::vector<uint32_t> inputs = n.inputs, results = n.results;
  size_t more = fuse_epilogue(k, *choice.entry, c, inputs, results);
  std::string name = describe(choice.entry->name, k, more);
  std::erase(results, TUTTI_NONE);
  std::vector<uint32_t> in = memories_of(inputs), out;
  for (size_t i = 0; i < n.inputs.size(); ++i)
    if (auto at = views_.find(n.inputs[i]); choice.entry->can.view(i) && at != views_.end())
      c.views[i] = {p_.type(n.inputs[i]).dtype, at->second.strides, at->second.offset};
  uint32_t over = overwritten_input(n, choice.entry->can);
  c.in_place = over != TUTTI_NONE;
  std::map<uint32_t, ResultPlace> places;
  if (choice.entry->can.places) places = place_results(k, name);
  for (size_t i = 0; i < n.results.size(); ++i)
    if (auto at = places.find(n.results[i]); at != places.end())
      c.places[i] = {p_.type(n.results[i]).dtype, at->second.view.strides, at->second.view.offset};
  const RenderedWork& work = made(choice, c, inputs.size() + results.size());
  for (uint32_t v : results) {
    if (auto at = places.find(v); at != places.end()) {
      out.push_back(at->second.memory);
      continue;
    }
    bool here = c.in_place && v == n.results[choice.entry->can.in_place->second];
    if (here) hold(v, over);
    out.push_back(here ? over : place_result(v, name, in));
  }
  if (!work.list.launches.empty()) add_work(work, name, k, in, out);
}

namespace {

/// Elementwise nodes can broadcast their inputs: if they are a broadcast's only readers, they read its source, and the
/// broadcast is removed.
void absorb_broadcasts(Program& p) {
  std::vector<bool> fixed(p.values.size());  // has a reader that needs the whole tensor
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

RenderedPlan plan_rendered(Program program, const Traits& traits, RenderCache& cache, const Trace& trace,
                           uint64_t tuning_bytes) {
  if (traits.library) take_results(program);
  absorb_broadcasts(program);
  return Planner(program, traits, cache, trace, tuning_bytes).run();
}

}  // namespace tutti::sdk
