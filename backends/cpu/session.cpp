#include "backends/cpu/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "backends/cpu/compiler.h"
#include "core/base/log.h"
#include "core/os/held_signals.h"
#include "kernels/cpu/denormals.h"
#include "sdk/interval.h"
#include "sdk/plan/host_allocations.h"
#include "sdk/plan/poison.h"
#include "sdk/trace.h"

namespace tutti::cpu {
namespace {

class CpuExecutable : public sdk::Executable {
 public:
  CpuExecutable(Shared& shared, sdk::Program program, Plan plan, bool asked)
      : shared_(shared),
        program_(std::move(program)),
        plan_(std::move(plan)),
        allocations_(program_, plan_, plan_.workspace, shared.states),
        traced_(logging::traced("kernels")),
        timed_(traced_ || asked) {
    if (traced_) seconds_.resize(plan_.steps.size());
    if (timed_) moments_.reserve(plan_.steps.size() + 3);
  }

  /// With TUTTI_TRACE=kernels, logs the mean time of every step of this executable.
  ~CpuExecutable() override {
    if (traced_) sdk::log_times(shared_.host, runs_, seconds_, [&](size_t k) { return plan_.steps[k].name; });
  }

  TuttiMemory memory() const override { return allocations_.sizes(); }

  void prepare() override {
    allocations_.allocate(program_, shared_.meter);
    for (Step& s : plan_.steps) s.kernel->bind(addresses(s.in), addresses(s.out), allocations_.workspace());
  }

  void watch(const std::vector<std::string>& states, sdk::Ready ready) override {
    finals_.clear();
    ready_ = std::move(ready);
    for (uint32_t k = 0; k < states.size(); ++k)
      finals_.push_back({writes_of(states[k]), k, shared_.states.data(states[k])});
    std::ranges::sort(finals_, {}, &Final::after);
  }

  void connect(const sdk::Exchange& exchange) override {
    for (Step& s : plan_.steps)
      if (auto* kernel = dynamic_cast<ExchangeKernel*>(s.kernel.get())) kernel->exchange = exchange;
  }

  void stage(std::span<void*> feeds) override { std::ranges::copy(allocations_.feeds(), feeds.begin()); }

  uint64_t run() override {
    moments_.clear();
    mark();
    run_steps();
    mark();
    for (size_t k = 0; k < seconds_.size(); ++k) seconds_[k] += 1e-9 * static_cast<double>(took(k + 1));
    ++runs_;
    return ++shared_.tickets;
  }

  std::vector<sdk::KernelTime> times() override {
    std::vector<sdk::KernelTime> all;
    for (const Step& s : plan_.steps) {
      const std::string& by = s.kernel->implementation;
      all.push_back({s.node, 0, 0, by.empty() ? s.name : fmt::format("{} ({})", s.name, by), s.reason});
    }
    if (runs_ == 0) return all;
    for (size_t k = 0; k < all.size(); ++k) all[k].start = moments_[k + 1], all[k].nanoseconds = took(k + 1);
    all.insert(all.begin(), {TUTTI_NONE, moments_[0], took(0), "threads bound to their processors"});
    size_t last = plan_.steps.size() + 1;
    all.push_back({TUTTI_NONE, moments_[last], took(last), "threads let go"});
    return all;
  }

 private:
  /// Reads the clock only once between two kernels, because it costs as much as a small kernel.
  void mark() {
    if (timed_) moments_.push_back(sdk::host_nanoseconds());
  }
  uint64_t took(size_t k) const { return moments_[k + 1] - moments_[k]; }

  void run_steps() {
    os::SignalsHeld held;
    LibraryScope library(shared_.library, shared_.threads);
    kernels::ComputeScope computing(shared_.threads, shared_.cpus);
    std::optional<kernels::FlushDenormals> flush;
    // threads of an OpenMP runtime may be the user's: they keep their mode
    if (shared_.library.foreign_threads().empty() && program_.numerics == TUTTI_FAST) flush.emplace();
    mark();
    auto final = finals_.begin();
    auto report = [&](size_t done) {
      for (; final != finals_.end() && final->after == done; ++final) ready_(final->state, final->data);
    };
    report(0);
    for (const Step& step : plan_.steps) try {
        if (poisons_) poison_results(step);
        step.kernel->run();
        report(static_cast<size_t>(&step - plan_.steps.data()) + 1);
        mark();
      } catch (const Error& e) {
        throw sdk::NodeError(step.node, e.code, fmt::format("{}: {}", step.name, e.what()), e.remedy);
      }
  }

  /// The number of steps after which the state is not written any more.
  size_t writes_of(const std::string& state) const {
    size_t after = 0;
    for (size_t k = 0; k < plan_.steps.size(); ++k)
      for (uint32_t m : plan_.steps[k].out)
        if (m != TUTTI_NONE && plan_.memories[m].place == sdk::Place::state && plan_.memories[m].state == state)
          after = k + 1;
    return after;
  }

  /// Fills what the step writes and does not read.
  void poison_results(const Step& step) const {
    auto fill = [](std::byte* at, uint64_t bytes) {
      for (uint64_t k = 0; k < bytes; k += sizeof sdk::poison)
        std::memcpy(at + k, &sdk::poison, std::min<uint64_t>(sizeof sdk::poison, bytes - k));
    };
    for (uint32_t m : step.out)
      if (m != TUTTI_NONE && std::ranges::find(step.in, m) == step.in.end())
        fill(allocations_.at(plan_.memories[m]), plan_.memories[m].bytes);
    fill(allocations_.workspace(), plan_.workspace);
  }

  std::vector<void*> addresses(const std::vector<uint32_t>& memories) const {
    std::vector<void*> at;
    for (uint32_t m : memories) at.push_back(m == TUTTI_NONE ? nullptr : allocations_.at(plan_.memories[m]));
    return at;
  }

  Shared& shared_;
  sdk::Program program_;
  Plan plan_;
  sdk::HostAllocations allocations_;
  /// A watched state: final after this many steps.
  struct Final {
    size_t after;
    uint32_t state;
    const void* data;
  };
  std::vector<Final> finals_;  // in the order in which they are final
  sdk::Ready ready_;
  bool traced_, timed_;
  const bool poisons_ = sdk::poisons();
  uint64_t runs_ = 0;
  std::vector<double> seconds_;    // per step, total of all runs, if traced
  std::vector<uint64_t> moments_;  // if timed: begin of the last run, times between its steps, end
};

class CpuSession : public sdk::HostSession<Shared> {
 public:
  CpuSession(const Library& library, int threads, const sdk::Host& host)
      : HostSession(library, threads), choices_(library.choose) {
    shared_.host = host;
    const std::string why = library.foreign_threads();
    host.log(3, library.name,
             fmt::format("threads: {}, {}", threads,
                         why.empty() ? "its own" : fmt::format("of the OpenMP runtime ({})", why)));
  }

  void check(const sdk::Program& program, std::span<uint8_t> accepted, const sdk::Why& why) override {
    for (uint32_t k = 0; k < program.nodes.size(); ++k) {
      const Choice& choice = choices_.of({program, k, shared_.threads});
      accepted[k] = choice.entry != nullptr;
      if (!choice.entry) why(k, choice.reasons());
    }
  }

  std::unique_ptr<sdk::Executable> compile(sdk::Program program, const TuttiOptions& options) override {
    LibraryScope library(shared_.library, shared_.threads);
    Plan plan = cpu::compile(shared_.library, program, shared_.threads, choices_, sdk::dispatch_trace(shared_.host));
    bool timed = (options.flags & TUTTI_OPT_PROFILE) != 0;
    return std::make_unique<CpuExecutable>(shared_, std::move(program), std::move(plan), timed);
  }

 private:
  ChoiceCache choices_;
};

}  // namespace

std::unique_ptr<sdk::Session> make_session(const Library& library, int threads, const sdk::Host& host) {
  return std::make_unique<CpuSession>(library, threads, host);
}

}  // namespace tutti::cpu
