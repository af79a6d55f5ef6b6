#include "verify/parity/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>

#include "core/os/environment.h"
#include "core/os/process.h"
#include "verify/parity/expected.h"
#include "verify/parity/huge.h"
#include "verify/parity/messages.h"

namespace tutti::parity {
namespace {

constexpr int most_silent = 3;  // a device is skipped after this many timeouts

/// The cases of one op on one device.
struct Share {
  size_t device = 0;
  std::vector<size_t> cases;
  bool huge = false;  ///< never two at once, because of their memory
};

class Worker {
 public:
  Worker(Share share, const std::vector<std::string>& words, std::vector<std::string> environment)
      : share(std::move(share)),
        process_(os::Program{.file = words[0],
                             .words = words,
                             .environment = std::move(environment),
                             .out = answers_.ends[1],
                             .group = true}) {  // so that compilers started by a driver are killed too
    answers_.close_end(1);
    os::ChildrenEndOnSignals::add(process_.id());
  }
  ~Worker() { os::ChildrenEndOnSignals::remove(process_.id()); }
  Worker(const Worker&) = delete;

  int from() const { return answers_.ends[0]; }
  os::LineReader::Result next(std::string& line, os::Deadline until) { return lines_.next(from(), line, until); }
  os::Ending end(bool by_force) {
    if (by_force) process_.kill();
    os::ChildrenEndOnSignals::remove(process_.id());
    return process_.wait();
  }
  size_t case_number() const { return share.cases[done]; }
  bool finished() const { return done == share.cases.size(); }

  const Share share;
  size_t done = 0;      ///< number of finished cases
  bool ready = false;   ///< the device was opened
  std::string problem;  ///< error message with which it ended
  os::Deadline since = os::Deadline::clock::now(), until;

 private:
  os::Pipe answers_;
  os::LineReader lines_;
  os::ChildProcess process_;
};

class Pool {
 public:
  Pool(const std::vector<Device>& devices, const std::vector<CaseId>& cases, const SuiteOptions& options,
       const Processes& processes)
      : cases_(cases), options_(options), processes_(processes), done_(devices.size()), silent_(devices.size()) {
    report_.seed = options.seed;
    for (const Device& d : devices) {
      report_.devices.push_back({.device = d, .exact = options.exact, .cases = std::vector<CaseResult>(cases.size())});
      expected_.push_back(expected_failures(d));
    }
    for (size_t first = 0; first < cases.size();) {
      Share share;
      size_t end = first;
      for (; end < cases.size() && cases[end].op == cases[first].op; ++end) {
        share.cases.push_back(end);
        share.huge = share.huge || cases[end].variant == huge;
      }
      for (share.device = 0; share.device < devices.size(); ++share.device) waiting_.push_back(share);
      first = end;
    }
  }

  Report run() {
    const os::ChildrenEndOnSignals mortal;
    for (;;) {
      while (running_.size() < processes_.at_once && start_next()) {
      }
      if (options_.stopped()) return stopped();
      if (running_.empty()) return std::move(report_);
      listen();
    }
  }

 private:
  /// Ends all processes and returns the results so far.
  Report stopped() {
    for (Worker& w : running_) w.end(true);
    running_.clear();
    for (DeviceResult& d : report_.devices) {
      size_t all = d.cases.size();
      std::erase_if(d.cases, [](const CaseResult& c) { return !c.id.op; });
      report_.partial = report_.partial || d.cases.size() < all;
    }
    return std::move(report_);
  }

  /// Starts the next process; returns false if there is none to start.
  bool start_next() {
    bool huge_runs = std::ranges::any_of(running_, [](const Worker& w) { return w.share.huge; });
    auto at = std::ranges::find_if(waiting_, [&](const Share& s) { return !s.huge || !huge_runs; });
    if (at == waiting_.end()) return false;
    Share share = std::move(*at);
    waiting_.erase(at);
    const Device& device = report_.devices[share.device].device;
    if (silent_[share.device] >= most_silent) {
      for (size_t c : share.cases)
        lose(share, c, fmt::format("not run: {} processes on {} did not return", most_silent, device.id));
      return true;
    }
    Job job{.device = device.id,
            .seed = options_.seed,
            .results = options_.see != nullptr,
            .exact = options_.exact,
            .cases = {}};
    for (size_t c : share.cases) job.cases.push_back(cases_[c]);
    std::vector<std::string> words = processes_.command;
    words.push_back(to_text(job));
    Worker& w =
        running_.emplace_back(std::move(share), words, os::environment_with({{"TUTTI_PLUGINS", device.plugin}}));
    w.until = os::deadline_in(processes_.patience);
    return true;
  }

  /// Waits for messages of the processes or the earliest timeout.
  void listen() {
    std::vector<int> from;
    os::Deadline until = running_.front().until;
    for (const Worker& w : running_) {
      from.push_back(w.from());
      until = std::min(until, w.until);
    }
    if (options_.stop) until = std::min(until, os::deadline_in(0.2));
    const std::vector<bool> ready = os::wait_readable(from, until);
    size_t k = 0;
    for (auto w = running_.begin(); w != running_.end(); ++k) {
      bool alive = ready[k] ? read(*w) : w->until > os::Deadline::clock::now();
      if (alive) {
        ++w;
        continue;
      }
      bury(*w, !ready[k]);
      w = running_.erase(w);
    }
  }

  /// Reads available lines. Returns false at the end of the output or for a malformed line.
  bool read(Worker& w) {
    std::string line;
    os::LineReader::Result got = w.next(line, w.until);
    for (; got == os::LineReader::line; got = w.next(line, {})) {
      Message m;
      try {
        m = parse_message(line);
      } catch (const Error& e) {
        m.problem = e.what();
      }
      if (!m.ready && m.problem.empty() && (w.finished() || m.id != cases_[w.case_number()].text()))
        m.problem = fmt::format("it answered for {}, which it was not asked for", m.id);
      take(w, std::move(m));
      if (!w.problem.empty()) return false;
    }
    return got != os::LineReader::closed;
  }

  void take(Worker& w, Message&& m) {
    auto now = os::Deadline::clock::now();
    report_.devices[w.share.device].seconds += std::chrono::duration<double>(now - std::exchange(w.since, now)).count();
    w.until = os::deadline_in(processes_.patience);
    w.ready = w.ready || m.ready;
    w.problem = m.problem;
    if (m.ready || !m.problem.empty()) return;
    m.result.id = cases_[w.case_number()];
    if (!m.seen.empty()) options_.see(m.result.id, m.seen);
    tell(w.share, w.case_number(), std::move(m.result));
    ++w.done;
  }

  /// Records the end of a process for its unfinished cases.
  void bury(Worker& w, bool silent) {
    os::Ending e = w.end(silent || !w.problem.empty());
    std::string how = silent               ? fmt::format("did not return within {:g} s", processes_.patience)
                      : !w.problem.empty() ? "failed: " + w.problem
                                           : fmt::format("{} {}", e.signal ? "died of" : "ended with", e.text());
    const DeviceResult& on = report_.devices[w.share.device];
    const std::string& op = cases_[w.share.cases[0]].op->name;
    silent_[w.share.device] += silent;
    if (w.finished()) {
      if (silent || e.exit_code != 0)
        report_.remarks.push_back(
            fmt::format("the worker process of {} on {} {} after its last case", op, on.device.id, how));
      return;
    }
    std::string where = w.ready ? "in " + cases_[w.case_number()].text() : "before its first case";
    if (w.ready) {
      lose(w.share, w.case_number(), "the process " + how);
      ++w.done;
    }
    for (; !w.finished(); ++w.done)
      lose(w.share, w.case_number(), fmt::format("not run: the process of {} {} {}", op, how, where));
  }

  /// Records a case without a result as failed.
  void lose(const Share& share, size_t c, std::string why) {
    CaseResult result{.id = cases_[c], .outcome = Outcome::fail, .why = std::move(why)};
    settle(result, report_.devices[share.device].device, expected_[share.device]);
    tell(share, c, std::move(result));
  }

  void tell(const Share& share, size_t c, CaseResult&& result) {
    DeviceResult& on = report_.devices[share.device];
    on.cases[c] = std::move(result);
    ++done_[share.device];
    if (options_.watch) options_.watch({on.device, on.cases[c], *std::ranges::min_element(done_), cases_.size()});
  }

  const std::vector<CaseId>& cases_;
  const SuiteOptions& options_;
  const Processes& processes_;
  Report report_;
  std::vector<std::vector<Expected>> expected_;
  std::list<Share> waiting_;
  std::list<Worker> running_;
  std::vector<size_t> done_;  // per device
  std::vector<int> silent_;   // per device: processes killed by a timeout
};

}  // namespace

Report run_in_processes(const std::vector<Device>& devices, const std::vector<CaseId>& cases,
                        const SuiteOptions& options, const Processes& processes) {
  return Pool(devices, cases, options, processes).run();
}

}  // namespace tutti::parity
