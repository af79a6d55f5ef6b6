#include "train/run/runner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "core/base/log.h"
#include "core/base/option_text.h"
#include "core/base/text.h"
#include "core/runtime/selector.h"
#include "train/run/exact_proof.h"
#include "train/run/profile.h"
#include "train/run/reference.h"

namespace tutti {

Fallback parse_fallback(const std::string& text) {
  if (text == "none") return Fallback::none;
  if (text == "cpu") return Fallback::cpu;
  throw invalid_option("fallback", text, "unknown", "use none or cpu");
}

struct Runner::Place {
  Place(const Device& device, const std::map<std::string, std::string>& options)
      : session(device, options), legalizer(session) {}
  Session session;
  Legalizer legalizer;
  uint64_t planned = 0, planned_peak = 0;
};

namespace {

/// Devices for a CPU fallback, best first: kind cpu, then the reference.
std::vector<Device> cpu_devices(const Device& except) {
  std::vector<Device> cpus, references;
  for (const Ranked& r : rank_devices(Registry::instance())) {
    const Device& d = r.device;
    if (!d.unusable.empty() || d.id == except.id) continue;
    if (is_reference(d))
      references.push_back(d);
    else if (d.kind == DeviceKind::cpu)
      cpus.push_back(d);
  }
  cpus.insert(cpus.end(), references.begin(), references.end());
  return cpus;
}

uint64_t transient_bytes(const Executable& e) { return e.planned_bytes() - e.memory().state; }

/// "its feeds are 'x', 'y'".
std::string known(const char* what, const std::map<std::string, TensorType>& names) {
  std::string list;
  for (const auto& [name, type] : names) list += fmt::format("{}'{}'", list.empty() ? "" : ", ", name);
  return fmt::format("its {} are {}", what, list.empty() ? "none" : list);
}

void check_type(const char* what, const std::string& name, const HostView& tensor, const TensorType& type) {
  if (tensor.type != type || tensor.bytes != num_bytes(type))
    throw invalid(fmt::format("{} '{}' has type {}, but the given tensor has type {}", what, name, to_string(type),
                              to_string(tensor.type)));
}

/// Which bits a NaN has depends on the device's instructions; no op reads them, so it is enough to set them here.
void one_nan(std::span<uint32_t> floats) {
  for (uint32_t& bits : floats)
    if ((bits & 0x7fffffffu) > 0x7f800000u) bits = 0x7fc00000u;
}

}  // namespace

// ---- a compiled graph

CompiledGraph::~CompiledGraph() {
  if (!prepared_) return;
  try {
    runner_.wait(last_);
  } catch (const Error&) {  // of the run, which whoever started it is told
  }
  for (const Compiled& p : parts_) runner_.places_[p.place]->planned -= transient_bytes(p.executable);
}

void CompiledGraph::prepare() {
  prepared_ = true;
  for (Compiled& p : parts_) {
    Runner::Place& place = *runner_.places_[p.place];
    place.planned += p.executable.planned_bytes();
    place.planned_peak = std::max(place.planned_peak, place.planned);
  }
  for (Compiled& p : parts_) p.executable.prepare();
  for (const TensorType& t : value_types_) values_.emplace_back(num_bytes(t));
}

void CompiledGraph::fill_feeds(Compiled& part, const Fill& fill) {
  std::vector<void*> memory = part.executable.stage();
  for (size_t i = 0; i < part.feeds.size(); ++i) {
    auto at = std::ranges::find(part.carried_feeds, part.feeds[i], &Carried::name);
    if (at == part.carried_feeds.end())
      fill(part.feeds[i], memory[i]);
    else if (const auto& bytes = values_[at->value]; !bytes.empty())
      std::memcpy(memory[i], bytes.data(), bytes.size());
  }
}

uint64_t CompiledGraph::run_part(Compiled& part, const Fill& fill) {
  bool profiled = profiler_ && profiler_->active();
  ProfiledRun run{.program = part.profiled, .begin = profiled ? profiler_->now() : 0};
  fill_feeds(part, fill);
  if (!profiled) return part.executable.run();
  run.launched = profiler_->now();
  uint64_t ticket = part.executable.run();
  runner_.places_[part.place]->session.wait(ticket);
  profiler_->add(std::move(run), [&] { return part.executable.times(); });
  return ticket;
}

uint64_t CompiledGraph::run(const Fill& fill) {
  if (parts_.size() == 1 && before_.empty() && after_.empty() && parts_[0].results.empty() && parts_[0].place == 0)
    return last_ = run_part(parts_[0], fill);
  auto session = [&](size_t place) -> Session& { return runner_.places_[place]->session; };
  auto read = [&](size_t place, const Carried& c) {
    session(place).read(c.name, values_[c.value].data(), values_[c.value].size());
  };
  for (const Split::Access& a : before_) read(a.place, a.carried);
  uint64_t last = 0;
  for (Compiled& p : parts_) {
    uint64_t ticket = run_part(p, fill);
    session(p.place).wait(ticket);
    for (const Carried& c : p.results) read(p.place, c);
    if (p.place == 0) last_ = last = ticket;
  }
  for (const Split::Access& a : after_)
    session(a.place).write(a.carried.name, values_[a.carried.value].data(), values_[a.carried.value].size());
  return last;
}

bool CompiledGraph::watch(const std::vector<std::string>& states, Ready ready) {
  return parts_.size() == 1 && parts_[0].place == 0 && parts_[0].executable.watch(states, std::move(ready));
}

bool CompiledGraph::connect(ExchangeValue exchange) {
  return parts_.size() == 1 && parts_[0].place == 0 && parts_[0].executable.connect(std::move(exchange));
}

bool CompiledGraph::prepare_sums(const std::vector<std::vector<std::string>>& groups) {
  const bool whole = parts_.size() == 1 && parts_[0].place == 0 && !profiler_;
  return sums_prepared_ = whole && parts_[0].executable.prepare_sums(groups);
}

uint64_t CompiledGraph::run_and_sum(const Fill& fill) {
  fill_feeds(parts_[0], fill);
  return last_ = parts_[0].executable.run_and_sum();
}

uint64_t CompiledGraph::run(const HostTensors& feeds) {
  HostViews views;
  for (const auto& [name, tensor] : feeds) views.emplace(name, view(tensor));
  return run(views);
}

uint64_t CompiledGraph::run(const HostViews& feeds) {
  for (const auto& [name, tensor] : feeds) {
    auto at = feeds_.find(name);
    if (at == feeds_.end()) throw invalid(fmt::format("run: the graph has no feed '{}'", name), known("feeds", feeds_));
    check_type("run: feed", name, tensor, at->second);
  }
  for (const auto& [name, type] : feeds_)
    if (!feeds.contains(name))
      throw invalid(fmt::format("run: no tensor for the feed '{}', {}", name, to_string(type)));
  return run([&](const std::string& feed, void* memory) {
    const HostView& v = feeds.at(feed);
    if (v.bytes) std::memcpy(memory, v.data, v.bytes);
  });
}

// ---- the runner

Runner::Runner(const Device& device, const std::map<std::string, std::string>& options, Fallback fallback)
    : fallback_(fallback) {
  places_.push_back(std::make_unique<Place>(device, options));
  if (fallback == Fallback::cpu) candidates_ = cpu_devices(device);
}

Runner::~Runner() = default;

Session& Runner::session() { return places_[0]->session; }
const Device& Runner::device() const { return places_[0]->session.device(); }

void Runner::add_part(CompiledGraph& to, size_t place, std::unique_ptr<const Lowered> lowered) {
  Session& session = places_[place]->session;
  CostEstimate cost = estimate_cost(lowered->program());
  to.cost_.flops += cost.flops;
  to.cost_.bytes += cost.bytes;
  to.exchanges_.insert(to.exchanges_.end(), lowered->exchanges().begin(), lowered->exchanges().end());
  to.parts_.push_back(
      {place, session.compile(lowered->program(), tuning_bytes, to.profiler_ != nullptr), lowered->feeds(), {}, {}});
  if (to.profiler_) to.parts_.back().profiled = to.profiler_->add(session.device().id, std::move(lowered));
}

bool Runner::accepts(const Graph& g) { return places_[0]->legalizer.accepts(g); }

std::unique_ptr<CompiledGraph> Runner::compile(const Graph& g, Profiler* profiler) {
  std::unique_ptr<CompiledGraph> compiled = compile_parts(g, profiler);
  for (const ValueInfo& v : g.values())
    if (v.role == Role::feed) compiled->feeds_.emplace(v.name, v.type);
  for (const State& s : g.states()) states_.emplace(s.name, g.info(s.after).type);
  return compiled;
}

std::unique_ptr<CompiledGraph> Runner::compile_parts(const Graph& g, Profiler* profiler) {
  Legalizer& legalizer = places_[0]->legalizer;
  Graph expanded = expand_for_device(g, legalizer);
  if (fallback_ == Fallback::cpu) {
    std::vector<Declined> declined = legalizer.declined(expanded);
    auto elsewhere = [&](const State& s) { return homes_.contains(s.name) && homes_.at(s.name) != 0; };
    if (!declined.empty() || std::ranges::any_of(g.states(), elsewhere))
      return in_parts(expanded, std::move(declined), profiler);
    for (const State& s : g.states()) homes_.try_emplace(s.name, 0);
  }
  std::unique_ptr<CompiledGraph> whole(new CompiledGraph(*this, profiler));
  add_part(*whole, 0, std::unique_ptr<const Lowered>(new Lowered(lower_for_device(expanded, legalizer))));
  return whole;
}

std::unique_ptr<CompiledGraph> Runner::in_parts(const Graph& g, std::vector<Declined> declined, Profiler* profiler) {
  std::unique_ptr<CompiledGraph> step(new CompiledGraph(*this, profiler));
  std::vector<size_t> placement = places_for(g, declined, step->fallback_);
  Split s = split(g, placement, homes_, fmt::format("fallback.{}.", splits_++));
  step->fallback_.bytes_per_step = s.bytes_per_step();
  for (Part& p : s.parts) {
    add_part(*step, p.place,
             std::unique_ptr<const Lowered>(new Lowered(compile_for_device(p.graph, places_[p.place]->legalizer))));
    step->parts_.back().carried_feeds = std::move(p.feeds);
    step->parts_.back().results = std::move(p.results);
  }
  step->value_types_ = std::move(s.values);
  step->before_ = s.before;
  step->after_ = s.after;
  FallbackReport& report = step->fallback_;
  if (!report.nodes.empty())
    logging::warning("fallback",
                     "{} of {} nodes are not supported by {} and run on {}, with {} bytes copied per step:\n  {}",
                     declined.size(), g.nodes().size(), device().id, fmt::join(report.devices, ", "),
                     report.bytes_per_step, fmt::join(report.nodes, "\n  "));
  return step;
}

/// The place of every node. Throws Error(declined) that lists nodes that no device runs.
std::vector<size_t> Runner::places_for(const Graph& g, std::vector<Declined>& declined, FallbackReport& report) {
  std::vector<size_t> placement(g.nodes().size());
  std::vector<Declined> homeless;
  for (Declined& d : declined) {
    if (!find_place(alone(g, g.nodes()[d.node]), placement[d.node], d.reason)) {
      homeless.push_back(d);
      continue;
    }
    const std::string& id = places_[placement[d.node]]->session.device().id;
    report.devices.insert(id);
    std::string line = fmt::format("{} on {}: {}", d.text, id, d.reason);
    if (std::ranges::find(report.nodes, line) == report.nodes.end()) report.nodes.push_back(line);
  }
  if (!homeless.empty())
    throw_declined(device().id + " (and every CPU device)", homeless, g.nodes().size(),
                   "use another device (`tutti devices` lists them) or another dtype");
  return placement;
}

/// Finds the first fallback place that runs a graph of one node; opens candidates as needed. If there is none, appends
/// their reasons to `reasons`.
bool Runner::find_place(const Graph& node, size_t& place, std::string& reasons) {
  std::string said = reasons;
  for (place = 1; place < places_.size() || !candidates_.empty(); ++place) {
    if (place == places_.size() && !open_candidate()) break;
    Legalizer& legalizer = places_[place]->legalizer;
    std::vector<Declined> declined = legalizer.declined(legalizer.expand(node));
    if (declined.empty()) return true;
    said += fmt::format("; {}: {}", places_[place]->session.device().id, declined[0].reason);
  }
  reasons = said + not_opened_;
  return false;
}

/// Opens the first candidate that can be opened and appends it to places_; false if there is none.
bool Runner::open_candidate() {
  while (!candidates_.empty()) {
    Device device = std::move(candidates_.front());
    candidates_.erase(candidates_.begin());
    try {
      if (auto why = Registry::instance().try_open(device); !why.empty()) throw Error(Code::internal, why);
      std::map<std::string, std::string> options;
      if (places_[0]->session.numerics() == TUTTI_EXACT) {
        options["numerics"] = "exact";
        prove_exact(device, options);
      }
      places_.push_back(std::make_unique<Place>(device, options));
      return true;
    } catch (const Error& e) {
      not_opened_ += fmt::format("; {}: {}", device.id, e.what());
      logging::warning("fallback", "{} cannot be used: {}", device.id, e.what());
    }
  }
  return false;
}

Session& Runner::home(const std::string& state) {
  auto it = homes_.find(state);
  return places_[it == homes_.end() ? 0 : it->second]->session;
}

void Runner::wait(uint64_t ticket) { places_[0]->session.wait(ticket); }
void Runner::read(const std::string& state, void* to, size_t bytes) {
  home(state).read(state, to, bytes);
  auto at = states_.find(state);
  if (places_[0]->session.numerics() == TUTTI_EXACT && at != states_.end() && at->second.dtype == DType::f32)
    one_nan({static_cast<uint32_t*>(to), bytes / sizeof(uint32_t)});
}
void Runner::write(const std::string& state, const void* from, size_t bytes) { home(state).write(state, from, bytes); }

bool Runner::forget(const std::string& state) {
  auto at = homes_.find(state);
  Place& place = *places_[at == homes_.end() ? 0 : at->second];
  const uint64_t used = place.session.used_bytes();
  if (!place.session.forget(state)) return false;
  place.planned -= used - place.session.used_bytes();
  homes_.erase(state);
  states_.erase(state);
  return true;
}

uint64_t Runner::peak_bytes() {
  uint64_t bytes = 0;
  for (const auto& p : places_) bytes += p->session.peak_bytes();
  return bytes;
}

uint64_t Runner::planned_bytes() const {
  uint64_t bytes = 0;
  for (const auto& p : places_) bytes += p->planned_peak;
  return bytes;
}

HostTensor Runner::read(const std::string& state) {
  auto at = states_.find(state);
  if (at == states_.end()) throw invalid(fmt::format("read: no compiled graph has a state '{}'", state));
  HostTensor tensor{at->second, std::vector<std::byte>(num_bytes(at->second))};
  read(state, tensor.bytes.data(), tensor.bytes.size());
  return tensor;
}

void Runner::write(const std::string& state, const HostView& value) {
  auto at = states_.find(state);
  if (at == states_.end()) throw invalid(fmt::format("write: no compiled graph has a state '{}'", state));
  check_type("write: state", state, value, at->second);
  write(state, value.data, value.bytes);
}

std::pair<TensorType, TuttiNativeState> Runner::native(const std::string& state) {
  auto at = states_.find(state);
  if (at == states_.end()) throw invalid(fmt::format("native: no compiled graph has a state '{}'", state));
  return {at->second, home(state).native(state)};
}

HostTensors run(const Graph& g, const Device& device, const HostTensors& inputs,
                const std::map<std::string, std::string>& options) {
  Runner runner(device, options);
  std::unique_ptr<CompiledGraph> compiled = runner.compile(g);
  compiled->prepare();
  HostTensors feeds = inputs;
  for (const State& s : g.states())
    if (auto at = feeds.find(s.name); at != feeds.end() && s.before != no_id) {
      runner.write(s.name, at->second);
      feeds.erase(at);
    }
  runner.wait(compiled->run(feeds));
  HostTensors out;
  for (const State& s : g.states()) out.emplace(s.name, runner.read(s.name));
  return out;
}

void Runner::check_memory() {
  for (const auto& p : places_) {
    uint64_t used = p->session.peak_bytes(), planned = p->planned_peak;
    if (used == planned) continue;
    const Device& d = p->session.device();
    throw Error(Code::internal,
                fmt::format("{}: plugin '{}' planned {} bytes ({}), but its peak use is {} ({}): these must be equal",
                            d.id, d.plugin, planned, bytes_text(planned), used, bytes_text(used)),
                "report it to the plugin's author; `tutti conformance --only 'memory.*'` on its library shows more");
  }
}

}  // namespace tutti
