#include "verify/parity/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "core/base/status.h"
#include "core/runtime/selector.h"
#include "train/run/reference.h"
#include "verify/parity/compare.h"
#include "verify/parity/conditioning.h"
#include "verify/parity/expected.h"
#include "verify/parity/huge.h"

namespace tutti::parity {
namespace {

constexpr size_t window = 64;  // maximum number of cases by which a fast group may be ahead of a slow one

/// One run of a program of the case, with the reference results.
struct Run {
  size_t program = 0;
  Tensors inputs;
  std::vector<Tensor> truth;  ///< for "state" cases only of the first run: later runs start from the device's state
};

/// A case with its programs and data.
struct Prepared {
  CaseId id;
  std::vector<CaseId> ids;            ///< per program
  std::vector<std::string> prefixes;  ///< per program: makes state names unique within a session
  std::vector<Graph> programs;
  std::vector<Run> runs;
};

const std::map<std::string, std::string> exact_session = {{"numerics", "exact"}};

Device reference() {
  static const Device device = select_device(reference_device);
  return device;
}

/// The expected value of every state after a step, in the order of g.states(): the float64 definitions, or the exact
/// numerics of the reference device.
std::vector<Tensor> expected_of(Graph& g, const Tensors& inputs, bool exact) {
  if (!exact) return truth_of(g, inputs);
  Session session(reference(), exact_session);
  Tensors states = DeviceProgram(session, g).run(inputs);
  std::vector<Tensor> all;
  for (const State& s : g.states()) all.push_back(std::move(states.at(s.name)));
  return all;
}

std::shared_ptr<Prepared> prepare(const CaseId& id, size_t number, const SuiteOptions& options) {
  auto p = std::make_shared<Prepared>();
  p->id = id;
  if (id.variant == huge) return p;
  p->ids = {id};
  if (id.variant == "batch") {
    p->ids.insert(p->ids.begin(), id);
    p->ids[0].variant.clear();
  }
  for (size_t k = 0; k < p->ids.size(); ++k) {
    p->prefixes.push_back(fmt::format("{}.{}.", number, k));
    p->programs.push_back(graph_of(p->ids[k], p->prefixes[k]));
  }
  uint64_t repeats = id.variant == "state" ? 3 : 2;
  for (uint64_t r = 0; r < repeats; ++r)
    for (size_t k = 0; k < p->programs.size(); ++k) {
      Tensors inputs = inputs_of(p->ids[k], p->programs[k], options.seed + r);
      std::vector<Tensor> truth;
      if (r == 0 || id.variant != "state") truth = expected_of(p->programs[k], inputs, options.exact);
      p->runs.push_back({k, std::move(inputs), std::move(truth)});
    }
  return p;
}

/// Compares all states of one run and stores the largest error in `result`.
void judge(CaseResult& result, const Prepared& p, const Run& run, const Tensors& inputs,
           const std::vector<Tensor>& truth, const std::vector<Tensor>& got, size_t r, bool exact) {
  const Graph& g = p.programs[run.program];
  const CaseId& id = p.ids[run.program];
  const std::string& prefix = p.prefixes[run.program];
  for (size_t k = 0; k < truth.size(); ++k) {
    std::string name = g.states()[k].name.substr(prefix.size());
    Bound bound = bound_of(*id.op, g, truth[k].type.dtype, name[0] == 'd');
    Difference d = exact ? compare_bits(got[k], truth[k])
                         : compare(got[k], truth[k], bound, [&] { return conditioning(id, inputs, k, prefix); });
    result.share = std::max(result.share, d.share);
    result.error = std::max(result.error, d.relative);
    if (d.ok) continue;
    result.outcome = Outcome::fail;
    if (result.why.empty()) result.why = fmt::format("{}{}: {}", name, r ? fmt::format(", run {}", r + 1) : "", d.text);
  }
}

CaseResult run_case(Session& session, Prepared& p, const SuiteOptions& options) {
  CaseResult result{.id = p.id};
  std::vector<std::unique_ptr<DeviceProgram>> programs;
  try {
    for (const Graph& g : p.programs) programs.push_back(std::make_unique<DeviceProgram>(session, g));
  } catch (const Error& e) {
    if (e.code != Code::declined) throw;
    result.outcome = Outcome::unsupported;
    result.why = e.what();
    return result;
  }
  std::vector<std::vector<Tensor>> before(programs.size());
  for (size_t r = 0; r < p.runs.size(); ++r) {
    const Run& run = p.runs[r];
    Graph& g = p.programs[run.program];
    std::vector<Tensor>& last = before[run.program];
    Tensors inputs = run.inputs;
    bool goes_on = run.truth.empty() && !g.states().empty();
    if (goes_on)
      for (size_t k = 0; k < last.size(); ++k)
        if (g.states()[k].before != no_id) inputs.at(g.states()[k].name) = last[k];
    Tensors states = programs[run.program]->run(inputs, !goes_on);
    std::vector<Tensor> got;
    for (const State& s : g.states()) got.push_back(std::move(states.at(s.name)));
    if (options.see && r == 0) options.see(p.id, got);
    if (options.tamper) options.tamper(p.id, static_cast<int>(r), got, last);
    judge(result, p, run, inputs, goes_on ? expected_of(g, inputs, options.exact) : run.truth, got, r, options.exact);
    last = std::move(got);
  }
  return result;
}

/// Prepared cases. Each is created once, by the first group of devices that needs it, and freed after the last.
class Cases {
 public:
  Cases(const std::vector<CaseId>& ids, size_t groups, const SuiteOptions& options)
      : ids_(ids), options_(options), slots_(ids.size()), next_(groups) {}

  /// Returns case i for group g, which has finished all earlier ones. Waits while the group is far ahead of another
  /// one. Rethrows errors of the preparation.
  std::shared_ptr<Prepared> take(size_t i, size_t g) {
    {
      std::unique_lock lock(mutex_);
      next_[g] = i;
      moved_.notify_all();
      moved_.wait(lock, [&] { return i < slowest() + window; });
      for (; freed_ < slowest(); ++freed_) slots_[freed_].prepared.reset();
    }
    Slot& slot = slots_[i];
    std::lock_guard lock(slot.making);
    if (!slot.prepared) slot.prepared = prepare(ids_[i], i, options_);
    return slot.prepared;
  }
  void finish(size_t g) {
    std::lock_guard lock(mutex_);
    next_[g] = ids_.size();
    moved_.notify_all();
  }

 private:
  size_t slowest() const { return *std::min_element(next_.begin(), next_.end()); }
  struct Slot {
    std::mutex making;
    std::shared_ptr<Prepared> prepared;
  };
  const std::vector<CaseId>& ids_;
  const SuiteOptions& options_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable moved_;
  std::vector<size_t> next_;  // per group
  size_t freed_ = 0;
};

/// Groups of device indices that share a thread. Software GPUs share one, because their drivers' compilers must not run
/// concurrently in one process (Intel's sometimes crashes together with PoCL's).
std::vector<std::vector<size_t>> groups_of(const std::vector<Device>& devices) {
  std::vector<std::vector<size_t>> groups;
  std::optional<size_t> software;
  for (size_t d = 0; d < devices.size(); ++d) {
    if (devices[d].kind == DeviceKind::software && !is_reference(devices[d])) {
      if (!software) software = groups.size(), groups.emplace_back();
      groups[*software].push_back(d);
    } else {
      groups.push_back({d});
    }
  }
  return groups;
}

/// One device's sessions: one per op, so that an op's states are freed afterwards.
class DeviceSessions {
 public:
  explicit DeviceSessions(const Device& device) : device_(device), expected_(expected_failures(device)) {}

  CaseResult run(const CaseId& id, Cases& line, size_t number, size_t group, const SuiteOptions& options) {
    CaseResult result{.id = id};
    try {
      std::shared_ptr<Prepared> p = line.take(number, group);
      if (id.op != std::exchange(op_, id.op)) session_.reset();
      if (id.variant == huge) {
        result = run_huge(device_, id);
      } else {
        if (!session_)
          session_ =
              std::make_unique<Session>(device_, options.exact ? exact_session : std::map<std::string, std::string>{});
        result = run_case(*session_, *p, options);
      }
    } catch (const std::exception& e) {
      result.outcome = Outcome::fail;
      result.why = e.what();
      session_.reset();  // later cases get a new session
    }
    settle(result, device_, expected_);
    return result;
  }

 private:
  const Device& device_;
  std::vector<Expected> expected_;
  std::unique_ptr<Session> session_;
  const OpDef* op_ = nullptr;
};

}  // namespace

std::string_view name(Outcome outcome) {
  switch (outcome) {
    case Outcome::pass: return "pass";
    case Outcome::fail: return "fail";
    case Outcome::unsupported: return "unsupported";
    case Outcome::expected: return "expected_failure";
    default: return "no_room";
  }
}

size_t DeviceResult::count(Outcome outcome, const OpDef* op) const {
  return static_cast<size_t>(std::count_if(
      cases.begin(), cases.end(), [&](const CaseResult& c) { return c.outcome == outcome && (!op || c.id.op == op); }));
}

std::string DeviceResult::replay(const CaseResult& c, uint64_t seed) const {
  return fmt::format("tutti parity --device {} --case {} --seed {}{}", device.id, c.id.text(), seed,
                     exact ? " --numerics exact" : "");
}

size_t Report::count(Outcome outcome) const {
  size_t n = 0;
  for (const DeviceResult& d : devices) n += d.count(outcome);
  return n;
}

Report run(const std::vector<Device>& devices, const std::vector<CaseId>& cases, const SuiteOptions& options) {
  using Clock = std::chrono::steady_clock;
  Report report{.seed = options.seed, .devices = {}};
  std::vector<std::unique_ptr<DeviceSessions>> sessions;
  for (const Device& d : devices) {
    report.devices.push_back({.device = d, .exact = options.exact});
    sessions.push_back(std::make_unique<DeviceSessions>(d));
  }
  std::vector<std::vector<size_t>> groups = groups_of(devices);
  Cases line(cases, groups.size(), options);
  std::mutex watching;
  std::vector<size_t> done(devices.size());
  auto work = [&](size_t group) {
    for (size_t i = 0; i < cases.size() && !options.stopped(); ++i)
      for (size_t d : groups[group]) {
        Clock::time_point start = Clock::now();
        report.devices[d].cases.push_back(sessions[d]->run(cases[i], line, i, group, options));
        report.devices[d].seconds += std::chrono::duration<double>(Clock::now() - start).count();
        std::lock_guard lock(watching);
        ++done[d];
        if (options.watch)
          options.watch(
              {devices[d], report.devices[d].cases[i], *std::min_element(done.begin(), done.end()), cases.size()});
      }
    line.finish(group);
    for (size_t d : groups[group]) sessions[d].reset();
  };
  std::vector<std::thread> threads;
  for (size_t g = 0; g < groups.size(); ++g) threads.emplace_back(work, g);
  for (std::thread& t : threads) t.join();
  report.partial = std::ranges::any_of(report.devices, [&](const auto& d) { return d.cases.size() < cases.size(); });
  return report;
}

}  // namespace tutti::parity
